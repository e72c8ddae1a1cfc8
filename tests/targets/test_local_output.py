"""What a benchmark prints, in any amount and of any kind, and the result file beside it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from core.targets.capped_file import HEAD_BYTES, TAIL_BYTES
from core.words import Status
from tests.targets.bench import Bench

RunPython = Callable[..., CompletedProcess[str]]
PASSED = {"status": "passed", "mode": "final", "score": 2.5, "cases": [{"name": "a", "score": 2.5}]}


def printing(*parts: str, end: str = "") -> str:
    return "import sys\n" + "".join(f"sys.stdout.write({part!r})\n" for part in parts) + end


@pytest.mark.parametrize("indent", [None, 2])
def test_json_after_log_lines_counts(bench: Bench, indent: int | None) -> None:
    outcome = bench.python(printing("building {…}\nrun 1 of 3\n", json.dumps(PASSED, indent=indent)))
    assert (outcome.status, outcome.score, outcome.result) == (Status.OK, 2.5, PASSED)


def test_the_last_of_two_results_counts(bench: Bench) -> None:
    outcome = bench.python(printing(json.dumps({"score": 1}), "\n", json.dumps(PASSED), "\n"))
    assert outcome.score == 2.5
    outcome = bench.python(printing(json.dumps(PASSED), "\n", '{"status": "incorrect"}', "\n"))
    assert outcome.status is Status.INCORRECT


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_half_a_json_is_no_result(bench: Bench, indent: int | None) -> None:
    text = json.dumps(PASSED, indent=indent)
    outcome = bench.python(printing(text[:-2]))
    assert outcome.reason == "no_result: it exited 0 without a JSON object"
    outcome = bench.python(printing(text[:-2], end="sys.stdout.flush(); raise ValueError('midway')"))
    assert outcome.reason == "exit 1 without a result: ValueError: midway"
    trace = printing(text[:-2], "\nTraceback (most recent call last):\n  File x\nValueError: midway\n")
    assert bench.python(trace).result is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", "no_result: it exited 0 without a JSON object"),
        (
            "import os; os.write(1, os.urandom(1 << 20).replace(b'{', b'['))",
            "no_result: it exited 0 without a JSON object",
        ),
        ("import os; os.write(1, bytes(range(256)) * 99)", "no_result: it exited 0 without a JSON object"),
        ("import os; os.close(1); os.close(2)", "no_result: it exited 0 without a JSON object"),
        ("print('[1, 2, 3]')", "no_result: it exited 0 without a JSON object"),
    ],
)
def test_output_without_a_result_is_a_crash(bench: Bench, code: str, reason: str) -> None:
    outcome = bench.python(code)
    assert (outcome.status, outcome.reason) == (Status.CRASH, reason)


def test_binary_before_the_result_does_no_harm(bench: Bench) -> None:
    code = "import os; os.write(1, bytes(range(256)) * 4096 + b'\\n{\"score\": 3}\\n')"
    assert bench.python(code).score == 3.0


FLOOD = """
import os, sys
line = b"x" * 99 + b"\\n"
for _ in range(2000):
    os.write(1, line * 1000)
print('{"status": "passed", "score": 7}')
"""
MEASURED = """
import json, os, resource, sys, time
from pathlib import Path
from tests.targets.bench import Bench
bench = Bench(Path(sys.argv[1]))
before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began_s = time.monotonic()
outcome = bench.python(sys.argv[2])
print(json.dumps({
    "score": outcome.score,
    "grown_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) >> 10,
    "children_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10,
    "seconds": time.monotonic() - began_s,
}))
"""


def test_200_mb_of_output_are_capped_on_disk_and_take_no_memory(
    run_python: RunPython, tmp_path: Path
) -> None:
    done = run_python(MEASURED, tmp_path, FLOOD)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["score"] == 7
    assert measured["grown_mib"] < 40
    assert measured["children_mib"] < 60
    assert measured["seconds"] < 10
    kept = Bench(tmp_path).output.joinpath("stdout").read_bytes()
    total = 200_000_000 + len('{"status": "passed", "score": 7}\n')
    note = f"\n[{total - HEAD_BYTES - TAIL_BYTES} bytes left out]\n".encode()
    assert len(kept) == HEAD_BYTES + len(note) + TAIL_BYTES
    assert kept[HEAD_BYTES : HEAD_BYTES + len(note)] == note
    assert kept.endswith(b'x\n{"status": "passed", "score": 7}\n')


@pytest.mark.parametrize("tail", [0, 1, TAIL_BYTES - 1, TAIL_BYTES, TAIL_BYTES + 1])
def test_output_up_to_the_cap_is_kept_whole(bench: Bench, tail: int) -> None:
    code = f"import os\nleft = {HEAD_BYTES + tail}\nwhile left: left -= os.write(1, b'x' * min(left, 99_999))"
    outcome = bench.python(code)
    left_out = max(0, tail - TAIL_BYTES)
    note = f"\n[{left_out} bytes left out]\n" if left_out else ""
    assert bench.printed() == "x" * HEAD_BYTES + note + "x" * (tail - left_out)
    assert ("bytes are not" in outcome.reason) == bool(left_out)


def test_a_result_too_large_for_stdout_is_told_where_to_go(bench: Bench) -> None:
    outcome = bench.python(f"import json; print(json.dumps({{'score': 1, 'x': 'x' * {2 * HEAD_BYTES}}}))")
    assert outcome.status is Status.CRASH
    assert outcome.reason.endswith("bytes are not; the file in KERNELDECK_RESULT holds more)")


def writing(text: str, end: str = "") -> str:
    """Code that writes `text`, NONCE replaced, as the result file."""
    return (
        "import os, pathlib, sys\n"
        "path, nonce = pathlib.Path(os.environ['KERNELDECK_RESULT']), os.environ['KERNELDECK_NONCE']\n"
        f"path.write_text({text!r}.replace('NONCE', nonce))\n{end}"
    )


def test_the_result_file_counts_before_stdout(bench: Bench) -> None:
    outcome = bench.python(writing('{"nonce": "NONCE", "score": 4}', "print('{\"score\": 9}')"))
    assert (outcome.score, outcome.channel) == (4.0, "file")
    outcome = bench.python(writing('{"nonce": "NONCE", "status": "incorrect"}', "print('{\"score\": 9}')"))
    assert outcome.status is Status.INCORRECT


def test_a_result_file_far_larger_than_stdout_may_be_is_read(bench: Bench) -> None:
    code = f"path.write_text(json.dumps({{'nonce': nonce, 'score': 4, 'x': 'x' * {2 * HEAD_BYTES}}}))"
    assert bench.python(writing("", f"import json; {code}")).score == 4.0


OTHER = "wrong_nonce: the result file does not carry this trial's nonce"
UNUSABLE = "bad_result: the result file cannot be used: it is "


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (writing('{"nonce": "other", "score": 4}'), OTHER),
        (writing('{"score": 4}'), OTHER),
        (writing('{"nonce": "NONCE", '), "bad_result: the result file is no JSON (Expecting property name"),
        (writing("[" * 100_000), "bad_result: the result file is no JSON (maximum recursion depth exceeded"),
        (writing("", "os.truncate(path, 1 << 40)"), UNUSABLE + "larger than 64 MiB"),
        (writing("", "path.unlink(); path.mkdir()"), UNUSABLE + "no regular file"),
        (writing("", "path.unlink(); os.mkfifo(path)"), UNUSABLE + "no regular file"),
        (writing("", "path.unlink(); path.symlink_to('/dev/zero')"), UNUSABLE + "a link"),
        (writing("", "path.unlink(); path.symlink_to('nowhere')"), UNUSABLE + "a link"),
    ],
)
def test_a_result_file_that_cannot_be_this_trials_is_a_crash(bench: Bench, code: str, reason: str) -> None:
    outcome = bench.python(code + '\nprint(\'{"status": "passed", "score": 1}\')')
    assert (outcome.status, outcome.result, outcome.channel) == (Status.CRASH, None, "")
    assert outcome.reason.startswith(reason)


def test_a_result_file_of_another_mode_is_a_crash(bench: Bench) -> None:
    outcome = bench.python(writing('{"nonce": "NONCE", "score": 4, "mode": "dev"}'))
    assert outcome.reason == "wrong_mode: the result says dev, final was asked"


def test_two_trials_at_once_do_not_take_each_others_results(bench: Bench) -> None:
    """Each result file lies in a folder of its own, and a nonce is never used again."""
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    said = []
    for _ in range(3):
        bench.python(code)
        said.append(json.loads(bench.printed()))
    for key in ("KERNELDECK_RESULT", "KERNELDECK_NONCE"):
        assert len({each[key] for each in said}) == 3


def test_what_is_not_utf8_does_not_spoil_the_reason(bench: Bench) -> None:
    outcome = bench.python("import os, sys; os.write(2, b'\\xff\\xfe bad\\n'); sys.exit(1)")
    assert outcome.reason == "exit 1 without a result: \ufffd\ufffd bad"


def test_standard_input_is_empty(bench: Bench) -> None:
    outcome = bench.python("import sys; print('{\"score\": %d}' % (len(sys.stdin.read()) + 1))")
    assert outcome.score == 1.0


def test_outputs_do_not_wait_for_each_other(bench: Bench) -> None:
    """A benchmark that fills one stream before the other is read in full."""
    code = "import os\nfor _ in range(50):\n    os.write(2, b'e' * 100_000); os.write(1, b'o' * 100_000)\n"
    outcome = bench.run(sys.executable, "-c", code + "print('\\n{\"score\": 1}')")
    assert outcome.status is Status.OK
    assert (bench.output / "stderr").stat().st_size > HEAD_BYTES
