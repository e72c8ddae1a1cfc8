"""What a trial finds in its folder, and what becomes of the files it changes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from core.targets.job import Layout
from core.targets.staging import LINK_FROM_BYTES
from core.words import Status
from tests.targets.bench import Bench

PASSED = 'echo \'{"status": "passed", "score": 1}\''
LARGE = b"x" * LINK_FROM_BYTES


def test_a_trial_finds_the_candidate_the_sealed_and_the_needed_files(bench: Bench) -> None:
    bench.protect("verifier.py", "sealed")
    bench.add("cases/small.json", "needed")
    (bench.root / "verifier.py").write_text("edited since it was sealed")
    (bench.root / "unneeded.txt").write_text("not laid out")
    slot = Layout({"src/kernel.py": bench.version("candidate")})
    outcome = bench.shell(
        f"find . -type f -exec sh -c 'echo $1 $(cat $1)' - {{}} \\; | sort; {PASSED}", slots=(slot,)
    )
    assert outcome.status is Status.OK
    assert bench.printed().splitlines()[:-1] == [
        "./cases/small.json needed",
        "./src/kernel.py candidate",
        "./verifier.py sealed",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("echo more >> a/verify.py", "a/verify.py was changed: line 3 was '', is 'more'"),
        (": > a/verify.py", "a/verify.py was changed: line 1 was 'one', is ''"),
        ("printf 'one\\n' > a/verify.py", "a/verify.py was changed: line 2 was 'two', is ''"),
        ("printf 'one\\ntwo' > a/verify.py", "a/verify.py was changed: line 3 was '', is absent"),
        ("rm a/verify.py", "a/verify.py was removed"),
        ("rm -r a", "a/verify.py was removed"),
        ("rm -r a; echo x > a", "a/verify.py was removed"),
        ("mv a b; ln -s b a", "a/verify.py was replaced: its folder is a link"),
        ("mv a/verify.py b; ln -s ../b a/verify.py", "a/verify.py was replaced: it is a link"),
        ("rm a/verify.py; ln -s nowhere a/verify.py", "a/verify.py was replaced: it is a link"),
        ("rm a/verify.py; mkdir a/verify.py", "a/verify.py was replaced: it is no regular file"),
        ("rm a/verify.py; mkfifo a/verify.py", "a/verify.py was replaced: it is no regular file"),
        ("rm a/verify.py; ln -s /dev/zero a/verify.py", "a/verify.py was replaced: it is a link"),
        ("truncate -s 1T a/verify.py", "a/verify.py was replaced: it is larger than 16 MiB"),
        ('rm -rf "$PWD"', "the whole folder was removed, protected files and all"),
        ('rm -rf "$(dirname "$PWD")"', "the whole folder was removed, protected files and all"),
        ('d="$PWD"; cd /; rm -rf "$d"; touch "$d"', "the whole folder was removed, protected files and all"),
    ],
)
def test_a_changed_protected_file_is_tampering(bench: Bench, change: str, reason: str) -> None:
    bench.protect("a/verify.py", "one\ntwo\n")
    outcome = bench.shell(f"{PASSED}; {change}")
    assert (outcome.status, outcome.reason, outcome.score) == (Status.TAMPERED, reason, None)


def test_tampering_is_seen_in_the_folder_of_every_arm(bench: Bench) -> None:
    bench.protect("verify.py", "one")
    arms = tuple(Layout({"kernel.py": bench.version(text)}) for text in "abc")
    code = (
        "import json, os, pathlib; folders = json.loads(os.environ['KERNELDECK_ARMS'])\n"
        "pathlib.Path(folders[2], 'verify.py').write_text('two')\n"
        "print('{\"score\": 1}')"
    )
    outcome = bench.python(code, slots=arms)
    assert (outcome.status, outcome.reason) == (
        Status.TAMPERED,
        "verify.py was changed: line 1 was 'one', is 'two'",
    )


@pytest.mark.parametrize("content", [os.urandom(3_000_000), b"\n" * 3_000_000])
def test_the_difference_of_large_files_is_found_in_time(bench: Bench, content: bytes) -> None:
    bench.protect("cases.bin", content)
    outcome = bench.shell(f"printf x >> cases.bin; {PASSED}")
    assert outcome.status is Status.TAMPERED
    assert outcome.reason.startswith("cases.bin was changed: line ")
    assert len(outcome.reason) < 600


def test_touching_a_protected_file_or_its_mode_is_no_tampering(bench: Bench) -> None:
    bench.protect("verify.sh", "exit 0")
    assert bench.shell(f"touch verify.sh; chmod +x verify.sh; ./verify.sh; {PASSED}").status is Status.OK


def test_a_benchmark_that_removes_its_folder_still_has_its_result(bench: Bench) -> None:
    assert bench.shell(f'rm -rf "$PWD"; {PASSED}').status is Status.OK


def test_a_candidate_may_change_its_own_and_other_needed_files(bench: Bench) -> None:
    notes = bench.add("notes.txt", "the user's")
    slots = (Layout({"kernel.py": bench.version("1")}),)
    assert bench.shell(f"echo 2 > kernel.py; echo 3 > notes.txt; {PASSED}", slots=slots).status is Status.OK
    assert notes.read_text() == "the user's"


def test_large_files_are_linked_from_one_copy_and_small_ones_copied(bench: Bench) -> None:
    large, small = bench.add("large.bin", LARGE), bench.add("small.bin", LARGE[1:])
    stage = bench.staging().lay_out((Layout({}),))
    again = bench.staging().lay_out((Layout({}),))
    inodes = [(each.folders[0] / "large.bin").stat() for each in (stage, again)]
    assert inodes[0].st_ino == inodes[1].st_ino != large.stat().st_ino
    assert inodes[0].st_nlink == 3
    assert stat.S_IMODE(inodes[0].st_mode) == 0o444
    assert (stage.folders[0] / "small.bin").stat().st_nlink == 1
    assert small.stat().st_nlink == large.stat().st_nlink == 1
    stage.remove()
    again.remove()


def test_a_large_file_that_changed_is_copied_anew(bench: Bench) -> None:
    large = bench.add("large.bin", LARGE)
    bench.staging().lay_out((Layout({}),)).remove()
    large.write_bytes(LARGE + b"more")
    stage = bench.staging().lay_out((Layout({}),))
    assert (stage.folders[0] / "large.bin").read_bytes() == LARGE + b"more"
    stage.remove()


WRITE = "chmod u+w large.bin; printf EVIL | dd of=large.bin conv=notrunc 2>/dev/null"


@pytest.mark.parametrize(
    "write", [WRITE, f"{WRITE}; touch -d 2001-01-01 large.bin", "chmod u+w large.bin; : > large.bin"]
)
def test_writing_into_a_large_file_reaches_neither_the_user_nor_later_trials(
    bench: Bench, write: str
) -> None:
    large = bench.add("large.bin", LARGE)
    first = bench.job("sh", "-c", f"{write}; {PASSED}")
    second = bench.job("sh", "-c", f"head -c 4 large.bin; echo; {PASSED}")
    outcomes = bench.each(first, second)
    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]
    assert outcomes[0].notes == ("large.bin was written into; the workspace's own is untouched",)
    assert outcomes[1].notes == ()
    assert bench.printed().startswith("xxxx\n")
    assert large.read_bytes() == LARGE


def test_a_large_file_written_into_by_a_trial_that_nobody_saw_end_is_not_used_again(bench: Bench) -> None:
    bench.add("large.bin", LARGE)
    unfinished = bench.staging().lay_out((Layout({}),))
    laid_out = unfinished.folders[0] / "large.bin"
    laid_out.chmod(0o644)
    laid_out.write_bytes(b"y" * len(LARGE))
    stage = bench.staging().lay_out((Layout({}),))
    assert (stage.folders[0] / "large.bin").read_bytes() == LARGE
    stage.remove()
    unfinished.remove()


def test_the_mode_of_a_large_file_is_no_later_trials(bench: Bench) -> None:
    bench.add("large.bin", bytes(LINK_FROM_BYTES))
    show = "stat -c '{\"score\": %a}' large.bin"
    outcomes = bench.each(*(bench.job("sh", "-c", each) for each in (f"{show}; chmod 777 large.bin", show)))
    assert [outcome.score for outcome in outcomes] == [444, 444]


def test_removing_a_large_file_from_its_folder_leaves_the_copy(bench: Bench) -> None:
    bench.add("large.bin", LARGE)
    outcome = bench.shell(f"rm -f large.bin; {PASSED}")
    assert (outcome.status, outcome.notes) == (Status.OK, ())
    assert len(list(bench.linked.iterdir())) == 1


def test_without_links_large_files_are_copied(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that has none: the system's own refusal, of a link across two of them."""
    large = bench.add("large.bin", LARGE)

    def refuse(source: object, place: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    stage = bench.staging().lay_out((Layout({}),))
    assert (stage.folders[0] / "large.bin").read_bytes() == large.read_bytes()
    assert stage.lent == ()
    stage.remove()


def test_executable_bits_are_kept(bench: Bench) -> None:
    bench.add("tool.sh", "#!/bin/sh\necho needed", 0o755)
    bench.add("large.sh", b"#!/bin/sh\necho large\nexit\n" + LARGE, 0o755)
    bench.protected["sealed.sh"] = bench.version("#!/bin/sh\necho sealed", executable=True)
    slot = Layout({"own.sh": bench.version("#!/bin/sh\necho own", executable=True)})
    outcome = bench.shell(f"./tool.sh; ./large.sh; ./sealed.sh; ./own.sh; {PASSED}", slots=(slot,))
    assert outcome.status is Status.OK
    assert bench.printed().split()[:4] == ["needed", "large", "sealed", "own"]


def test_a_command_may_be_a_path_in_the_folder(bench: Bench) -> None:
    bench.protected["bench.sh"] = bench.version(f"#!/bin/sh\n{PASSED}\n", executable=True)
    assert bench.run("./bench.sh").score == 1.0


NAMES = ["with space.py", "quo\"te's.py", "new\nline.py", "-leading.py", "ünï-ço∂é.py", "$(touch x);&|*?[a]",
         "back\\slash", " ", "a/ b/-c", os.fsdecode(b"not-utf8-\xff\xfe.bin")]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name) for name in NAMES])
def test_any_file_name_is_laid_out_run_and_compared(bench: Bench, name: str) -> None:
    bench.add(f"needed/{name}", "needed")
    bench.protect(f"sealed/{name}", "sealed")
    slot = Layout({f"own/{name}": bench.version("own")})
    code = "import pathlib, sys; [print(pathlib.Path(d, sys.argv[1]).read_text()) for d in sys.argv[2:]]"
    command = (sys.executable, "-c", code + "; print('{\"score\": 1}')", name, "needed", "sealed", "own")
    outcome = bench.run(*command, slots=(slot,))
    assert outcome.status is Status.OK
    assert bench.printed().split()[:3] == ["needed", "sealed", "own"]
    removal = "import pathlib, sys; pathlib.Path('sealed', sys.argv[1]).unlink()"
    tampered = bench.run(sys.executable, "-c", removal, name, slots=(slot,))
    assert tampered.status is Status.TAMPERED


def test_a_workspace_with_a_path_of_more_than_300_characters(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*(letter * 80 for letter in "abcd"))
    folder.mkdir(parents=True)
    bench = Bench(folder)
    bench.add("deep/" + "n" * 200, "needed")
    bench.protect("verify.py", "1")
    assert len(str(bench.root)) > 300
    assert bench.shell(f"cat deep/*; {PASSED}").status is Status.OK


def test_links_inside_the_workspace_are_laid_out_as_files(bench: Bench) -> None:
    bench.add("real.txt", "content")
    (bench.root / "link.txt").symlink_to("real.txt")
    bench.others.append("link.txt")
    assert bench.shell(f"test ! -L link.txt && cat link.txt && {PASSED}").status is Status.OK
    assert bench.printed().startswith("content")


MESSES = {
    "closed folders": "mkdir -p a/b/c; touch a/b/c/f; chmod 000 a/b/c a/b a; chmod 555 .",
    "links out": 'ln -s "$HOME" home; ln -s / root; mkdir a; ln -s .. a/up',
    "deep folders": "import os\nfor _ in range(1100): os.mkdir('d'); os.chdir('d')",
    "many files": "import pathlib\nfor n in range(400): pathlib.Path(str(n)).touch()",
    "pipes and sockets": "import os, socket\nos.mkfifo('p'); socket.socket(socket.AF_UNIX).bind('s')",
}


@pytest.mark.parametrize("mess", MESSES)
def test_whatever_a_trial_leaves_in_its_folder_is_removed(bench: Bench, mess: str) -> None:
    outside = bench.folder / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    if "import" in MESSES[mess]:
        bench.python(MESSES[mess])
    else:
        bench.shell(MESSES[mess].replace("$HOME", str(outside)))
    assert bench.staged() == []
    assert (outside / "kept").read_text() == "kept"


def test_what_lies_beside_the_folder_is_removed_too(bench: Bench) -> None:
    outcome = bench.shell('echo part > "$KERNELDECK_RESULT.123.part"; echo x > ../y; ' + PASSED)
    assert outcome.status is Status.OK
    assert bench.staged() == []
