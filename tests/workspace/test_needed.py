"""Which files of a workspace a trial needs, by git, by looking, and by globs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from core.errors import ConfigFault
from core.workspace.needed import needed_files, total_bytes

REPO = Path(__file__).resolve().parents[2]


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    root = tmp_path / "checkout"
    root.mkdir()
    git(root, "init")
    return root


def test_outside_a_checkout_every_file_counts(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a/c.json", "a/.hidden", ".env")
    assert needed_files(tmp_path) == [".env", "a/.hidden", "a/c.json", "b.py"]
    assert total_bytes(tmp_path, needed_files(tmp_path)) == len("b.pya/c.jsona/.hidden.env")


NEVER = [".git/config", ".kerneldeck/state", "a/__pycache__/m.pyc", ".venv/x", "node_modules/x/y",
         ".mypy_cache/x", "my-env/pyvenv.cfg", "my-env/lib/x.py", "conda/conda-meta/history", "conda/bin/x",
         "kd-state/0f/state.sqlite3", "kd-state/0f/blobs/ab/abc"]  # fmt: skip


@pytest.mark.parametrize("globs", [(), ("**/*",), ("**",)], ids=["looking", "all", "stars"])
def test_state_environments_and_caches_never_count(tmp_path: Path, globs: tuple[str, ...]) -> None:
    write(tmp_path, "kernel.py", "env/model.py", *NEVER)
    assert needed_files(tmp_path, globs) == ["env/model.py", "kernel.py"]


def test_a_folder_that_ignores_itself_is_passed_over_unless_it_is_named(tmp_path: Path) -> None:
    write(tmp_path, "kernel.py", "cache/big.bin", "out/kept.bin")
    (tmp_path / "cache" / ".gitignore").write_text("# made by a tool\n*\n")
    (tmp_path / "out" / ".gitignore").write_text("*\n!kept.bin\n")
    assert needed_files(tmp_path) == ["kernel.py", "out/.gitignore", "out/kept.bin"]
    assert needed_files(tmp_path, ("cache/*.bin",)) == ["cache/big.bin"]


def test_in_a_checkout_what_git_keeps_counts(checkout: Path) -> None:
    write(
        checkout, "tracked.py", "untracked.py", "ignored.log", "gone.py", "state/.kerneldeck/x", "new\nline"
    )
    (checkout / ".gitignore").write_text("*.log\n")
    git(checkout, "add", "tracked.py", "gone.py")
    (checkout / "gone.py").unlink()
    assert needed_files(checkout) == [".gitignore", "new\nline", "tracked.py", "untracked.py"]


def test_a_workspace_below_the_top_of_a_checkout_sees_its_own_files(checkout: Path) -> None:
    write(checkout, "outside.py", "kernels/gemm/kernel.py")
    git(checkout, "add", "-A")
    assert needed_files(checkout / "kernels" / "gemm") == ["kernel.py"]


def test_a_workspace_that_git_ignores_is_looked_through(checkout: Path) -> None:
    (checkout / ".gitignore").write_text("scratch/\n")
    write(checkout, "scratch/kernel.py")
    assert needed_files(checkout / "scratch") == ["kernel.py"]


def test_a_repository_inside_counts_with_its_files(checkout: Path) -> None:
    write(checkout, "kernel.py", "inner/header.h")
    git(checkout / "inner", "init")
    assert needed_files(checkout) == ["inner/header.h", "kernel.py"]
    git(checkout / "inner", "add", "-A")
    git(checkout / "inner", "-c", "user.name=n", "-c", "user.email=e", "commit", "-m", "m")
    git(checkout, "-c", "advice.addEmbeddedRepo=false", "add", "-A")
    assert needed_files(checkout) == ["inner/header.h", "kernel.py"]


def test_git_of_somewhere_else_is_not_asked(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As inside a hook, where the environment names the repository that called."""
    write(checkout, "theirs.py")
    write(tmp_path / "mine", "kernel.py")
    monkeypatch.setenv("GIT_DIR", str(checkout / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(checkout))
    assert needed_files(tmp_path / "mine") == ["kernel.py"]


def test_without_git_every_file_counts(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(checkout, "kernel.py", "ignored.log")
    (checkout / ".gitignore").write_text("*.log\n")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert needed_files(checkout) == [".gitignore", "ignored.log", "kernel.py"]


@pytest.mark.parametrize(
    ("globs", "names"),
    [
        (("*.py",), ["a.py"]),
        (("data/*.bin", "a.py"), ["a.py", "data/x.bin"]),
        (("data",), ["data/sub/y.bin", "data/x.bin"]),
        (("data/",), ["data/sub/y.bin", "data/x.bin"]),
        (("data/**",), ["data/sub/y.bin", "data/x.bin"]),
        (("data/**/*.bin",), ["data/sub/y.bin", "data/x.bin"]),
        (("./a.py", "a.py"), ["a.py"]),
        (("data/../a.py",), ["a.py"]),
        (("*",), ["a.py", "b.txt"]),
    ],
)
def test_globs_name_what_counts(tmp_path: Path, globs: tuple[str, ...], names: list[str]) -> None:
    write(tmp_path, "a.py", "b.txt", "data/x.bin", "data/sub/y.bin")
    assert needed_files(tmp_path, globs) == names


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("none/*.py", "matches nothing in "),
        ("/etc/passwd", "is no pattern of files in the workspace"),
        ("", "is no pattern of files in the workspace"),
        ("../other/*", "matches nothing in "),
        ("../workspace-2/*", "leads out of the workspace, to "),
    ],
)
def test_a_glob_that_is_none_or_finds_nothing_or_leads_out_is_refused(
    tmp_path: Path, pattern: str, said: str
) -> None:
    root = tmp_path / "workspace"
    write(root, "a.py")
    write(tmp_path / "workspace-2", "b.py")
    with pytest.raises(ConfigFault, match=said):
        needed_files(root, (pattern,))


def links(root: Path, pairs: Iterable[tuple[str, str]]) -> None:
    for name, target in pairs:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)


def in_every_way(root: Path, globs: tuple[str, ...] = ("**/*", "*/*")) -> list[list[str]]:
    """By looking, by git untracked and tracked, and by globs."""
    found = [needed_files(root), needed_files(root, globs)]
    git(root, "init")
    found.append(needed_files(root))
    git(root, "add", "-A")
    return [*found, needed_files(root)]


def test_links_inside_the_workspace_are_followed(tmp_path: Path) -> None:
    write(tmp_path, "real/a.txt", "b.txt")
    links(tmp_path, [("to-file", "b.txt"), ("to-folder", "real"), ("real/up", "../b.txt")])
    everything = ["b.txt", "real/a.txt", "real/up", "to-file", "to-folder/a.txt", "to-folder/up"]
    assert in_every_way(tmp_path) == [everything] * 4


def test_links_in_a_circle_and_to_nothing_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "a/file")
    links(tmp_path, [("a/up", ".."), ("self", "self"), ("one", "two"), ("two", "one"), ("nowhere", "absent")])
    for found in in_every_way(tmp_path, ("a", "*/*")):
        assert found == ["a/file"]


@pytest.mark.parametrize(
    ("link", "target"),
    [("a", "../outside/file"), ("a", "../outside"), ("deep/a", "/etc"), ("a", "../absent")],
)
def test_a_link_out_of_the_workspace_is_refused(tmp_path: Path, link: str, target: str) -> None:
    root = tmp_path / "workspace"
    write(root, "kernel.py")
    write(tmp_path, "outside/file")
    links(root, [(link, target)])
    for prepare in (None, ("init",), ("add", "-A")):
        if prepare:
            git(root, *prepare)
        with pytest.raises(ConfigFault) as fault:
            needed_files(root)
        assert fault.value.sentence.startswith(f"{link} leads out of the workspace, to /")
        assert fault.value.hint == "replace the link by the file, or leave it out with files.needed"
    assert needed_files(root, ("*.py",)) == ["kernel.py"], "what is left out may lead where it likes"


def test_a_glob_through_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    write(root, "kernel.py")
    write(tmp_path, "outside/file")
    links(root, [("out", "../outside")])
    with pytest.raises(ConfigFault, match="out/file leads out of the workspace"):
        needed_files(root, ("out/*",))


def test_a_workspace_reached_through_a_link_is_the_same(tmp_path: Path) -> None:
    write(tmp_path / "real", "a.txt", "b/c.txt")
    links(tmp_path / "real", [("link", "a.txt")])
    links(tmp_path, [("way", "real")])
    assert needed_files(tmp_path / "way") == needed_files(tmp_path / "real") == ["a.txt", "b/c.txt", "link"]


def test_pipes_and_sockets_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, "kernel.py")
    os.mkfifo(tmp_path / "pipe")
    assert needed_files(tmp_path) == ["kernel.py"]


NAMES = [
    "with space",
    "quo\"te's",
    "new\nline",
    "-leading",
    "ünï",
    "[a]*?",
    "tab\t",
    os.fsdecode(b"raw-\xff"),
]


@pytest.mark.parametrize("name", NAMES, ids=map(ascii, NAMES))
def test_any_name_counts(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}-folder").mkdir()
    for path in (tmp_path / name, tmp_path / f"{name}-folder" / name):
        path.write_text("")
    assert in_every_way(tmp_path) == [sorted([name, f"{name}-folder/{name}"])] * 4


UNREADABLE = """
import os, sys
from pathlib import Path
from core.errors import ConfigFault
from core.workspace.needed import needed_files
os.chmod(Path(sys.argv[1], "closed"), 0)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    needed_files(Path(sys.argv[1]))
except ConfigFault as fault:
    print(fault.sentence)
"""


def test_a_folder_that_cannot_be_read_is_said() -> None:
    """As a user who may not; root, who may read all, becomes nobody."""
    with tempfile.TemporaryDirectory(prefix="kerneldeck-test-") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        write(root, "kernel.py", "closed/file")
        done = subprocess.run(
            [sys.executable, "-c", UNREADABLE, str(root)],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(REPO)},
        )  # fmt: skip
        (root / "closed").chmod(0o755)
    assert done.stdout == "closed cannot be read: Permission denied\n", done.stderr
