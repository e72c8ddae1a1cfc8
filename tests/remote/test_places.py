"""Which place is meant, and the file in which a user describes places."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ArgumentFault, ConfigFault, KerneldeckError, StorageFault
from core.targets.ssh.address import Address
from core.targets.ssh.places import Place, Places, here
from core.targets.ssh.places_file import add_place, choose, remove_place, targets_file, use_place
from core.targets.ssh.places_toml import read_places

H100 = Place(
    "h100",
    Address("gpu-box", "me", 2222),
    gpu="1",
    scratch="/scratch/me",
    python="/opt/python/bin/python3",
    wrapper=("docker", "exec", "-i", "a b"),
    environment=MappingProxyType({"CUDA_HOME": "/usr/local/cuda", "EMPTY": ""}),
    description="the one in the corner",
    key_file=Path("/keys/one"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "kerneldeck" / "targets.toml"


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def fault(kind: type[KerneldeckError], do: Callable[[], object]) -> KerneldeckError:
    with pytest.raises(kind) as caught:
        do()
    return caught.value


def without_source(place: Place) -> Place:
    return Place(**{name: getattr(place, name) for name in Place.__slots__ if name != "source"})


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert targets_file({"XDG_CONFIG_HOME": "/etc/me"}) == Path("/etc/me/kerneldeck/targets.toml")
    for nothing in ({}, {"XDG_CONFIG_HOME": ""}, {"XDG_CONFIG_HOME": "relative"}):
        assert targets_file(nothing) == Path("/home/me/.config/kerneldeck/targets.toml")


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither HOME nor an entry in the table of users."""
    monkeypatch.delenv("HOME", raising=False)

    def unknown(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)


def test_without_a_home_there_are_no_described_targets(homeless: None) -> None:
    nowhere = targets_file({})
    assert nowhere is None and read_places(nowhere) == Places()
    assert choose("", {}, nowhere).is_local
    assert choose("ssh:box", {}, nowhere).name == "ssh:box"
    told = fault(ConfigFault, lambda: add_place(nowhere, H100))
    assert "no home folder" in told.sentence and "XDG_CONFIG_HOME" in told.hint
    assert targets_file({"XDG_CONFIG_HOME": "/c"}) == Path("/c/kerneldeck/targets.toml")


def test_without_any_word_trials_run_here(file: Path) -> None:
    assert choose("", {}, file) == here() and here().is_local
    assert not file.parent.exists()


def test_the_sources_count_in_their_order(file: Path) -> None:
    add_place(file, H100)
    add_place(file, Place("other", Address("elsewhere")))
    use_place(file, "other")
    both = {"KERNELDECK_GPU_HOST": "h100", "HARNESSGYM_GPU_HOST": "gym"}
    assert choose("ssh:asked:99", both, file).address == Address("asked", "", 99)
    assert choose("local", both, file).is_local
    assert choose("h100", {}, file).gpu == "1"
    assert choose("", both, file).name == "h100"
    assert choose("", {"HARNESSGYM_GPU_HOST": "gym", "KERNELDECK_GPU_HOST": " "}, file).name == "ssh:gym"
    assert choose("", {"HARNESSGYM_GPU_HOST": ""}, file).name == "other"
    use_place(file, "local")
    assert choose("", {}, file).is_local


@pytest.mark.parametrize("value", ["me@box", "ssh:me@box"])
def test_the_variable_may_name_a_bare_host(file: Path, value: str) -> None:
    place = choose("", {"KERNELDECK_GPU_HOST": value}, file)
    assert (place.address, place.source) == (Address("box", "me"), "KERNELDECK_GPU_HOST")


def test_a_variable_can_mean_this_machine(file: Path) -> None:
    assert choose("", {"KERNELDECK_GPU_HOST": "local", "HARNESSGYM_GPU_HOST": "gym"}, file).is_local


def test_the_companions_of_the_foreign_variable(file: Path) -> None:
    environ = {
        "HARNESSGYM_GPU_HOST": "me@gym",
        "HARNESSGYM_GPU_PORT": "2200",
        "HARNESSGYM_GPU_KEY": "/keys/gym",
        "HARNESSGYM_GPU_REMOTE_ROOT": "/data/gym",
    }
    place = choose("", environ, file)
    assert place.address == Address("gym", "me", 2200)
    assert (place.key_file, place.scratch, place.source) == (
        Path("/keys/gym"), "/data/gym", "HARNESSGYM_GPU_HOST",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HARNESSGYM_GPU_HOST", "a b", "HARNESSGYM_GPU_HOST: 'a b' is no host name"),
        ("HARNESSGYM_GPU_PORT", "ssh", "HARNESSGYM_GPU_PORT: 'ssh' is no port (1 to 65535)"),
        ("HARNESSGYM_GPU_KEY", "~nobody-here/k", "HARNESSGYM_GPU_KEY: '~nobody-here/k': that home folder is"),
        ("HARNESSGYM_GPU_REMOTE_ROOT", "data", "HARNESSGYM_GPU_REMOTE_ROOT: 'data' is no absolute path"),
        ("KERNELDECK_GPU_HOST", "-bad", "KERNELDECK_GPU_HOST: ssh:-bad: '-bad' is no host name"),
    ],
)
def test_a_variable_that_cannot_be(file: Path, name: str, value: str, said: str) -> None:
    environ = {"HARNESSGYM_GPU_HOST": "gym", name: value}
    assert fault(ArgumentFault, lambda: choose("", environ, file)).sentence.startswith(said)


def test_an_unknown_name_is_told_with_what_was_perhaps_meant(file: Path) -> None:
    add_place(file, H100)
    told = fault(ArgumentFault, lambda: choose("h10", {}, file))
    assert told.sentence == "no target is called 'h10'"
    assert told.hint == (
        "did you mean h100? for a host of ~/.ssh/config write ssh:h10; targets: local, h100"
    )  # fmt: skip


def test_a_broken_file_harms_only_those_who_need_it(file: Path) -> None:
    written(file, "schema = \n")
    assert choose("local", {}, file).is_local
    assert choose("ssh:box", {}, file).name == "ssh:box"
    assert choose("", {"HARNESSGYM_GPU_HOST": "gym"}, file).name == "ssh:gym"
    for asked in ("", "box"):
        assert "targets.toml" in fault(ConfigFault, lambda: choose(asked, {}, file)).sentence  # noqa: B023


def test_what_is_added_is_read_back(file: Path) -> None:
    add_place(file, H100)
    add_place(file, Place("plain", Address("box")))
    found = read_places(file)
    assert list(found.by_name) == ["h100", "plain"] and found.used == ""
    assert without_source(found.named("h100")) == H100
    assert found.named("plain").source == str(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["targets.toml"]


def test_a_name_is_given_once(file: Path) -> None:
    add_place(file, H100)
    before = file.read_bytes()
    told = fault(ArgumentFault, lambda: add_place(file, H100))
    assert told.sentence == "a target is called h100 already" and "target remove h100" in told.hint
    assert file.read_bytes() == before


def test_a_place_in_use_that_is_removed_leaves_none_in_use(file: Path) -> None:
    add_place(file, H100)
    add_place(file, Place("plain", Address("box")))
    use_place(file, "h100")
    assert read_places(file).used == "h100"
    remove_place(file, "h100")
    assert read_places(file) == Places(read_places(file).by_name, "") and choose("", {}, file).is_local
    assert fault(ArgumentFault, lambda: remove_place(file, "h100")).sentence == "no target is called 'h100'"
    assert fault(ArgumentFault, lambda: use_place(file, "h100")).sentence == "no target is called 'h100'"
    assert list(read_places(file).by_name) == ["plain"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (Place("local", Address("a")), "'local' is this machine"),
        (Place("ssh:x", Address("a")), "'ssh:x' is no name"),
        (Place("-x", Address("a")), "'-x' is no name"),
        (Place("x"), "names no host"),
        (Place("x", Address("a"), gpu="first"), "gpu: 'first' is neither an index"),
        (Place("x", Address("a"), gpu="-1"), "gpu: '-1'"),
        (Place("x", Address("a"), scratch="scratch"), "scratch: 'scratch' is no absolute path"),
        (Place("x", Address("a"), scratch="/"), "scratch: / is no folder"),
        (Place("x", Address("a"), scratch="/a/../.."), "scratch: '/a/../..' holds .."),
        (Place("x", Address("a"), python="python3; rm"), "python: 'python3; rm' is neither"),
        (Place("x", Address("a"), wrapper=("docker", "")), "wrapper: holds an empty word"),
        (Place("x", Address("a"), environment={"A-B": ""}), "environment: 'A-B' is no name"),
        (Place("x", Address("a"), environment={"KERNELDECK_NONCE": ""}), "environment: KERNELDECK_NONCE is"),
        (Place("x", Address("a"), description="two\nlines"), "description: is longer"),
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_is_not_written(file: Path, place: Place, said: str) -> None:
    assert said in fault(ArgumentFault, lambda: add_place(file, place)).sentence
    assert not file.exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("host = 3", ":3: targets.x.host: 3 is not a text in quotes"),
        ('host = "a b"', ":3: targets.x.host: 'a b' is no host name"),
        ('host = "a:99999"', ":3: targets.x.host: '99999' is no port (1 to 65535)"),
        ("# nothing", ":2: targets.x.host: is missing"),
        ('host = "a"\ngpu = true', ":4: targets.x.gpu: True is not an index or a UUID in quotes"),
        ('host = "a"\ngpu = -1', ":4: targets.x.gpu: -1 is not an index"),
        ('host = "a"\nwrapper = "docker exec"', ":4: targets.x.wrapper: 'docker exec' is not a list"),
        ('host = "a"\nwrapper = [1]', ":4: targets.x.wrapper: [1] is not a list of words"),
        ('host = "a"\npyton = "x"', ":4: targets.x.pyton: is not a key of this table"),
        ('host = "a"\nenvironment = {A = 1}', ":4: targets.x.environment.A: 1 is not a text"),
        ('host = "a"\nenvironment = "A=1"', ":4: targets.x.environment: 'A=1' is not a table"),
        ('host = "a"\nscratch = "here"', ":4: targets.x.scratch: 'here' is no absolute path"),
        ('host = "a"\nkey_file = "~nobody-here/x"', ":4: targets.x.key_file: '~nobody-here/x': that home"),
        ('host = "a"\nkey_file = "a\\u0000b"', ":4: targets.x.key_file: 'a\\x00b' holds a NUL byte"),
        ('host = "a"\ngpu = 0x' + "f" * 5000, ":4: targets.x.gpu: "),
        ('host = "a"\n[other]', ":4: other: is not a key of this table"),
        ('host = "a"\n[targets.local]\nhost = "b"', ":4: targets.local: 'local' is this machine"),
        ('host = "a"\n[targets."a b"]\nhost = "b"', ":4: targets.a b: 'a b' is no name"),
    ],
)  # fmt: skip
def test_a_fault_in_the_file_is_told_with_its_line(file: Path, line: str, said: str) -> None:
    written(file, f"schema = 1\n[targets.x]\n{line}\n")
    assert f"{file}{said}" in fault(ConfigFault, lambda: read_places(file)).sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 2\n", ":1: schema: 2 is not a schema this version reads"),
        ('use = "x"\n', ":1: use: no target is called 'x'"),
        ("x = " + "[" * 5000, " cannot be read: "),
        ("x = " + "9" * 5000, " cannot be read: "),
        ("schema = 0x" + "f" * 5000, ":1: schema: "),
        ("targets = 3\n", ":1: targets: 3 is not a table"),
        ("[targets]\nx = 1\n", ":2: targets.x: 1 is not a table"),
    ],
)
def test_a_fault_at_the_top_of_the_file(file: Path, text: str, said: str) -> None:
    written(file, text)
    assert f"{file}{said}" in fault(ConfigFault, lambda: read_places(file)).sentence
    before = file.read_bytes()
    fault(ConfigFault, lambda: add_place(file, H100))
    assert file.read_bytes() == before


def test_a_file_that_is_no_text(file: Path) -> None:
    written(file, "").write_bytes(b"\xff")
    assert "not UTF-8 at byte 0" in fault(ConfigFault, lambda: read_places(file)).sentence


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir, lambda path: path.symlink_to(path)],
    ids=["pipe", "endless", "folder", "circle"],
)
def test_what_is_no_file_is_told_at_once(file: Path, make: Callable[[Path], object]) -> None:
    file.parent.mkdir(parents=True)
    make(file)
    for do in (lambda: read_places(file), lambda: add_place(file, H100)):
        assert f"{file} cannot be read: " in fault(ConfigFault, do).sentence


def test_a_file_beyond_all_measure_is_not_read(file: Path) -> None:
    os.truncate(written(file, ""), 1 << 40)
    assert "larger than 1 MiB" in fault(ConfigFault, lambda: read_places(file)).sentence


@pytest.mark.parametrize("changes", [{"description": "\udcff"}, {"environment": {"A": "\udcff"}}])
def test_words_that_are_no_text_are_not_written(file: Path, changes: dict[str, Any]) -> None:
    (key,) = changes
    told = fault(ArgumentFault, lambda: add_place(file, replace(H100, **changes)))
    assert told.sentence == f"target h100: {key}: is no UTF-8"
    assert not file.parent.exists()


def test_a_write_that_is_interrupted_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add_place(file, H100)
    assert list(file.parent.iterdir()) == []


def test_a_linked_file_stays_a_link(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("schema = 1\n")
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    add_place(file, H100)
    assert file.is_symlink() and "h100" in real.read_text()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    told = fault(StorageFault, lambda: add_place(tmp_path / "taken" / "targets.toml", H100))
    assert "cannot be made" in told.sentence


def test_many_writers_lose_nothing(file: Path) -> None:
    names = [f"box{number}" for number in range(12)]
    writers = [
        threading.Thread(target=add_place, args=(file, Place(name, Address("a")))) for name in names
    ]  # fmt: skip
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(read_places(file).by_name) == sorted(names)


words = st.text(st.characters(exclude_characters="\0\n\r", codec="utf-8"), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(words, max_size=4), words, st.dictionaries(st.from_regex(r"[A-Z]{1,5}", fullmatch=True), words)
)
def test_any_words_survive_the_file(
    tmp_path_factory: pytest.TempPathFactory, wrapper: list[str], text: str, variables: dict[str, str]
) -> None:
    file = tmp_path_factory.mktemp("places") / "targets.toml"
    place = Place(
        "x", Address("a"), wrapper=tuple(wrapper), environment=MappingProxyType(variables), description=text
    )
    add_place(file, place)
    assert without_source(read_places(file).named("x")) == place
