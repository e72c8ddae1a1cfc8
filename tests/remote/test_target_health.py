"""`health`: each stage told in its order, and what nvidia-smi may answer over there."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.remote.conftest import Serve
from tests.remote.far import Far, far_of
from tests.remote.sshd import User
from tests.remote.test_agent_gpu import EIGHT, ROW, UUID, script

ORDER = ["config", "dns", "connect", "hostkey", "auth", "shell", "channel", "scratch", "gpu"]
FarWith = Callable[[str], Far]


@pytest.fixture
def far_with(tmp_path: Path, user: User, serve: Serve) -> FarWith:
    """A target whose nvidia-smi is this shell script; "" for none."""

    def made(body: str) -> Far:
        folder = tmp_path / "bin"
        folder.mkdir()
        if body:
            script(folder, body)
        home = tmp_path / "sshd1" / "home"
        return far_of(tmp_path, user, serve(f"SetEnv HOME={home} PATH={folder}:/usr/local/bin:/usr/bin:/bin"))

    return made


def printing(folder: Path, cards: str, processes: str = "") -> str:
    (folder / "cards").write_text(cards)
    (folder / "processes").write_text(processes)
    return f'case "$1" in *gpu=*) cat {folder}/cards;; *) cat {folder}/processes;; esac'


def states(health: dict[str, Any]) -> dict[str, str]:
    assert [stage["stage"] for stage in health["stages"]] == ORDER
    return {stage["stage"]: stage["state"] for stage in health["stages"]}


def ms_of(health: dict[str, Any]) -> dict[str, Any]:
    return {stage["stage"]: stage["ms"] for stage in health["stages"]}


def failed(health: dict[str, Any], stage: str, coarse: str) -> dict[str, str]:
    """Everything before `stage` was passed, nothing after it was tried; the sentence and what to do.

    A session on the connection is opened before the shell in it can fail.
    """
    assert (health["status"], health["stage"], health["failure_stage"]) == ("failed", stage, coarse)
    seen = states(health)
    at = ORDER.index(stage)
    assert set(list(seen.values())[:at]) <= {"ok"} and seen[stage] == "failed"
    later = {name: state for name, state in list(seen.items())[at + 1 :] if name != "channel"}
    assert set(later.values()) <= {"skipped"}
    row: dict[str, str] = health["stages"][at]
    assert row["sentence"] and row["remedy"] and row["ms"] is not None
    return row


def test_eight_cards_and_who_uses_them_are_shown(far_with: FarWith, tmp_path: Path) -> None:
    hot = EIGHT.replace("0x0000000000000001", "0x0000000000000040", 1)
    far = far_with(printing(tmp_path, hot, f"{UUID.format(3)}, 4242, 1024, python3\n"))
    health = far.deck.json("health", env=far.env)
    assert set(states(health).values()) == {"ok"} and health["failure_stage"] is None
    assert len(health["gpus"]) == 8 and health["gpus"][0]["throttle_reasons"] == ["heat (hardware)"]
    assert health["processes"][0]["pid"] == 4242
    shown = far.deck.run("target", "check", "gpu", env=far.env).out
    assert "GPU 7: NVIDIA H200, driver 550.90.07" in shown and "throttled by heat (hardware)" in shown
    assert "GPU 3 is in use by process 4242 (python3, 1,024 MiB)" in shown
    assert "GPU 0 (trials run on it):" in shown and "GPU 7 (trials" not in shown
    assert re.search(r"[0-9,]+ of [0-9,]+ MiB used, .* MHz", shown) and ".0 " not in shown
    head = shown.splitlines()[0]
    assert re.fullmatch(r"ssh:gpu: ok, Python 3\.[0-9.]+, [0-9,]+ MB free", head)
    far.describe(gpu=3)
    health = far.deck.json("health", env=far.env)
    assert (
        health["trial_gpu"] == UUID.format(3) == far.deck.json("health", "--cached", env=far.env)["trial_gpu"]
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "cannot be run there"),
        ("exec sleep 1000", "did not answer within 1 s"),
        ("echo 'Unable to determine the device handle'; exit 9", "ended with 9"),
        ("printf '\\033[31mno, csv, here\\n'", "lists no GPU"),
        ("head -c 4000000 /dev/zero", "did not answer"),
    ],
    ids=["absent", "hung", "broken", "garbage", "flood"],
)
def test_what_is_wrong_with_the_gpu_is_told(far_with: FarWith, body: str, words: str) -> None:
    far = far_with(body)
    row = failed(far.deck.json("health", "--timeout", "1", env=far.env, code=3), "gpu", "gpu")
    assert words in row["sentence"] and "\033" not in row["sentence"]
    health = far.deck.json("health", "--timeout", "1", "--no-require-gpu", env=far.env)
    assert states(health)["gpu"] == "skipped"


def test_a_hung_nvidia_smi_starts_no_trial(far_with: FarWith) -> None:
    far = far_with("echo 'driver mismatch'; exit 18")
    fault = far.deck.run("verify", "--json", env=far.env, code=3).answer["error"]
    assert fault["code"] == "target.gpu" and "driver mismatch" in fault["sentence"]
    assert far.left() == []


def test_the_chosen_card_is_the_one_that_a_trial_sees(far_with: FarWith, tmp_path: Path) -> None:
    far = far_with(printing(tmp_path, EIGHT, f"{UUID.format(3)}, 4242, 1024, python3\n"))
    far.describe(gpu=3)
    far.deck.kernel('score=5; test "$CUDA_VISIBLE_DEVICES" = ' + UUID.format(3) + " || score=6")
    ran = far.deck.json("run", env=far.env)
    assert ran["score"] == 5 and "1 other process on the GPU before it" in ran["reason"]
    shown = far.deck.run("inspect", env=far.env).out
    assert "NVIDIA H200" in shown and "driver 550.90.07" in shown
    far.describe(gpu=9)
    fault = far.deck.run("run", "--json", env=far.env, code=3).answer["error"]
    assert fault["code"] == "target.gpu" and "has no GPU 9" in fault["sentence"]


def test_how_the_gpu_was_before_and_after_is_kept_with_the_trial(far_with: FarWith, tmp_path: Path) -> None:
    """Idle before it; what it does makes the card hot."""
    far = far_with(printing(tmp_path, EIGHT))
    (tmp_path / "hot").write_text(ROW.format(0, 0, 0x1 | 0x4 | 0x40).replace(" 34, ", " 91, ") + "\n")
    far.deck.kernel(f"score=5; cp {tmp_path}/hot {tmp_path}/cards")
    ran = far.deck.json("run", env=far.env)
    assert ran["reason"] == "the GPU was throttled after it: power cap, heat (hardware)"
    kept = json.loads((Path(ran["output"]) / "gpu.json").read_text())
    cards = [kept[when]["card"] for when in ("before", "after")]
    assert [card["temperature_c"] for card in cards] == [34.0, 91.0]
    assert cards[0]["throttle_reasons"] == ["idle"] and cards[0]["power_w"] == 77.41


def test_of_several_cards_a_trial_sees_the_first_when_none_is_named(
    far_with: FarWith, tmp_path: Path
) -> None:
    far = far_with(printing(tmp_path, EIGHT))
    far.deck.kernel('score=5; test "$CUDA_VISIBLE_DEVICES" = ' + UUID.format(0) + " || score=6")
    assert far.deck.json("run", env=far.env)["score"] == 5


def test_a_card_that_does_not_work_is_none_that_a_trial_takes(far_with: FarWith, tmp_path: Path) -> None:
    first, *others = EIGHT.splitlines(keepends=True)
    values = first.split(", ")
    values[4] = "[GPU is lost]"
    far = far_with(printing(tmp_path, ", ".join(values) + "".join(others)))
    health = far.deck.json("health", "--no-require-gpu", env=far.env)
    assert health["status"] == "ok" and health["trial_gpu"] is None and len(health["gpus"]) == 8
    failed(far.deck.json("health", env=far.env, code=3), "gpu", "gpu")


def test_too_little_space_is_a_fault_of_the_disk(far_with: FarWith, tmp_path: Path) -> None:
    far = far_with(printing(tmp_path, ROW.format(0, 0, 1)))
    health = far.deck.json("health", "--min-free-mb", "1e12", env=far.env, code=3)
    assert "MB are free" in failed(health, "scratch", "disk")["sentence"]


def test_ways_in_that_are_closed_are_told_by_their_stage(
    tmp_path: Path, user: User, closed_port: int, serve: Serve
) -> None:
    far = far_of(tmp_path, user, None, closed_port)
    health = far.deck.json("health", env=far.env, code=3)
    failed(health, "connect", "ssh")
    assert ms_of(health)["dns"] is not None
    far.describe(host="nowhere.invalid")
    failed(far.deck.json("health", env=far.env, code=3), "dns", "ssh")
    server = serve("ForceCommand exit 1")
    user.config.write_text("")
    far = far_of(tmp_path / "forced", user, server)
    failed(far.deck.json("health", env=far.env, code=3), "shell", "remote")
    server_key = user.known_hosts.read_text()
    user.known_hosts.write_text("")
    health = far.deck.json("health", env=far.env, code=3)
    failed(health, "hostkey", "ssh")
    times = ms_of(health)
    assert times["dns"] is not None and times["connect"] is not None and times["hostkey"] > 0
    user.known_hosts.write_text(server_key)


def test_a_silent_peer_is_given_up_in_time(tmp_path: Path, user: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        far = far_of(tmp_path, user, None, silent.getsockname()[1])
        health = far.deck.json("health", "--timeout", "1", env=far.env, code=3)
        assert "within 1 s" in failed(health, "connect", "ssh")["sentence"]


def test_arguments_of_those_who_come_from_elsewhere(tmp_path: Path, user: User, closed_port: int) -> None:
    far = far_of(tmp_path, user, None, closed_port)
    words = ["health", "--host", "127.0.0.1", "--port", str(closed_port), "--key", str(user.key)]
    health = far.deck.json(*words, "--remote-root", "/tmp/elsewhere", env=far.env, code=3)
    failed(health, "connect", "ssh")
    assert str(user.key) not in str(health)
    planned = far.deck.json("health", "--dry-run", env=far.env)
    assert planned["would_check"] == ORDER and planned["target"] == "ssh:gpu"
    nowhere = {**far.env, "KERNELDECK_GPU_HOST": None}
    assert "no GPU host" in far.deck.fault("health", "--require-remote", env=nowhere, code=3)
    here = far.deck.json("health", "--no-require-gpu", env=nowhere)
    assert here["target"] == "local" and here["status"] == "ok"
