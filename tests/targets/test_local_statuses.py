"""Every status that a local trial can end with, each by a real process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from core.errors import StorageFault
from core.targets.job import Layout, Outcome
from core.targets.local import LocalTarget
from core.words import Status
from tests.targets.bench import SCORE, Bell, Bench, ends

RunPython = Callable[..., CompletedProcess[str]]
PASSED = '{"status": "passed", "mode": "final", "score": 2.5}'


def test_ok(bench: Bench) -> None:
    outcome = bench.shell(f"echo working >&2; echo '{PASSED}'")
    assert outcome == Outcome(
        Status.OK, score=2.5, result=json.loads(PASSED), channel="stdout", exit_code=0,
        duration_s=outcome.duration_s,
    )  # fmt: skip
    assert 0 < outcome.duration_s < 10
    assert bench.printed() == PASSED + "\n"
    assert (bench.output / "stderr").read_text() == "working\n"


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("echo '{\"status\": \"failed\"}'; exit 1", "incorrect", "the result says failed, and not why"),
        ("echo '{\"status\": \"failed\", \"errors\": [\"tile\"]}'; exit 1", "invalid", "tile"),
        ("echo '{\"status\": \"compile_error\", \"errors\": [\"x\"]}'", "compile_error", "x"),
        ("echo ptxas fatal: no >&2; exit 1", "compile_error", "ptxas fatal: no"),
        ("echo '{\"status\": \"oom\"}'", "oom", "the result says oom, and not why"),
        ("echo '{\"status\": \"unstable\", \"errors\": [\"x\"]}'", "unstable", "x"),
        ("true", "crash", "no_result: it exited 0 without a JSON object"),
        ("echo hello", "crash", "no_result: it exited 0 without a JSON object"),
        ("exit 3", "crash", "exit 3 without a result"),
        ("echo bad luck >&2; exit 3", "crash", "exit 3 without a result: bad luck"),
        ("kill -SEGV $$", "crash", "signal 11 (SIGSEGV)"),
        (f"echo '{PASSED}'; exit 1", "crash", "exit 1, although the result says passed"),
        (f"echo '{PASSED}'; kill -ABRT $$", "crash", "signal 6 (SIGABRT), although the result says passed"),
        ("echo '{\"mode\": \"dev\"}'", "crash", "wrong_mode: the result says dev, final was asked"),
        ("echo '{\"score\": -1}'", "crash", "bad_score: score is -1, not a finite number above 0"),
        ("echo '{\"score\": NaN}'", "crash", "bad_score: score is nan, not a finite number above 0"),
        ("echo '{\"score\": \"1\"}'", "crash", "bad_score: score is '1', no number"),
        ("seq 3 > /dev/full", "infra", "seq: write error: No space left on device"),
    ],
)  # fmt: skip
def test_each_end_has_its_status_and_reason(bench: Bench, script: str, status: str, reason: str) -> None:
    outcome = bench.shell(script)
    assert (outcome.status, outcome.score) == (status, None)
    assert outcome.reason == reason


def test_oom_of_the_language(bench: Bench) -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); bytearray(1 << 30)"
    outcome = bench.python(code)
    assert (outcome.status, outcome.reason) == (Status.OOM, "MemoryError")


def test_timeout(bench: Bench) -> None:
    outcome = bench.shell(f"echo '{PASSED}'; exec sleep 60", timeout_s=0.1)
    assert (outcome.status, outcome.reason) == (Status.TIMEOUT, "still running after 0.1 s, ended")
    assert 0.1 <= outcome.duration_s < 10


def test_a_benchmark_that_ignores_being_asked_to_end_is_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.targets.local.GRACE_S", 0.3)
    outcome = bench.shell("trap '' TERM; while :; do sleep 60; done", timeout_s=0.5)
    assert outcome.status is Status.TIMEOUT
    assert 0.8 <= outcome.duration_s < 10


def test_a_benchmark_that_ends_in_its_grace_period_still_timed_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.targets.local.GRACE_S", 20.0)
    script = f"trap 'echo bye; exit 0' TERM; echo '{PASSED}'; while :; do sleep 60 & wait; done"
    outcome = bench.shell(script, timeout_s=0.5)
    assert outcome.status is Status.TIMEOUT
    assert bench.printed().endswith("bye\n")
    assert outcome.duration_s < 15


def test_an_endless_time_out_is_fine(bench: Bench) -> None:
    assert bench.shell(f"echo '{PASSED}'", timeout_s=1e9).status is Status.OK


def test_tampered(bench: Bench) -> None:
    bench.protect("verifier.py", "TOLERANCE = 1e-3\nCASES = 5\n")
    outcome = bench.shell(f"sed -i s/1e-3/1e9/ verifier.py; echo '{PASSED}'")
    assert outcome.status is Status.TAMPERED
    assert outcome.reason == ("verifier.py was changed: line 1 was 'TOLERANCE = 1e-3', is 'TOLERANCE = 1e9'")
    assert outcome.score is None


def test_cancelled(bench: Bench, bell: Bell) -> None:
    """The task that waits is cancelled only once nothing of the trial is left."""

    async def cancel() -> int:
        target = LocalTarget(bench.staging(), SCORE)
        script = f"echo $$ > '{bell.path}'; exec sleep 60"
        task = asyncio.create_task(target.run(bench.job("sh", "-c", script)))
        pid = int(await bell.rung())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        await target.close()
        return pid

    assert ends(asyncio.run(cancel()))
    assert bench.staged() == []


@pytest.mark.parametrize("late", [False, True])
def test_a_cancel_at_any_moment_leaves_nothing(bench: Bench, late: bool) -> None:
    async def cancel() -> None:
        target = LocalTarget(bench.staging(), SCORE)
        if late:
            await target.run(bench.job("true"))
        for steps in range(12):
            task = asyncio.create_task(target.run(bench.job("sleep", "60")))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await target.run(bench.job("echo", PASSED))).status is Status.OK
        await target.close()

    asyncio.run(cancel())
    assert bench.staged() == []


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("no-such-program",), "No such file or directory"),
        (("./none.sh",), "No such file or directory"),
        (("./plain.txt",), "Permission denied"),
        (("./folder",), "Permission denied"),
        (("./lost.sh",), "its first line names an interpreter that is not there"),
        (("./headless.sh",), "Exec format error; a script begins with a line like #!/bin/sh"),
        (("echo", "a\0b"), "embedded null byte"),
    ],
)
def test_a_command_that_cannot_be_started_is_infra(
    bench: Bench, command: tuple[str, ...], reason: str
) -> None:
    bench.add("plain.txt", "echo", 0o644)
    bench.add("folder/file")
    bench.add("lost.sh", "#!/no/such/interpreter\n", 0o755)
    bench.add("headless.sh", "echo\n", 0o755)
    outcome = bench.run(*command)
    assert (outcome.status, outcome.stage) == (Status.INFRA, "spawn")
    assert outcome.reason == f"{command[0]} could not be started: {reason}"


def test_a_staging_folder_that_cannot_be_made_is_infra(bench: Bench) -> None:
    bench.staging_folder.parent.mkdir()
    bench.staging_folder.write_text("a file in its place")
    target = LocalTarget(bench.staging(), SCORE)
    outcome = asyncio.run(target.run(bench.job("true")))
    assert (outcome.status, outcome.stage) == (Status.INFRA, "scratch")
    assert outcome.reason.startswith("the trial could not be laid out: Not a directory: ")


def test_an_output_folder_that_cannot_be_made_is_infra(bench: Bench) -> None:
    bench.output.parent.mkdir(parents=True)
    bench.output.write_text("a file in its place")
    outcome = bench.shell("true")
    assert (outcome.status, outcome.stage) == (Status.INFRA, "scratch")


def test_an_output_file_that_cannot_be_opened_is_infra(bench: Bench) -> None:
    (bench.output / "stderr").mkdir(parents=True)
    outcome = bench.shell("true")
    assert (outcome.status, outcome.stage) == (Status.INFRA, "scratch")
    assert outcome.reason == "the trial was not seen to its end: its output cannot be kept: Is a directory"


def test_a_needed_file_that_is_gone_is_infra(bench: Bench) -> None:
    bench.add("cases.json").unlink()
    outcome = bench.shell("true")
    assert (outcome.status, outcome.stage) == (Status.INFRA, "scratch")
    assert outcome.reason.endswith("cases.json")


def test_a_content_that_is_no_longer_kept_is_infra_and_nothing_stays(bench: Bench) -> None:
    bench.protect("verifier.py", "1")
    bench.blobs.remove(bench.protected["verifier.py"].sha256)
    outcome = bench.shell("true")
    assert (outcome.status, outcome.stage) == (Status.INFRA, "scratch")
    assert "is not kept (any more)" in outcome.reason


def test_a_difference_that_cannot_be_shown_is_infra(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.protect("verifier.py", "1")
    blob = bench.blobs.path(bench.protected["verifier.py"].sha256)
    outcome = bench.shell(f"echo 2 > verifier.py; rm -f '{blob}'; echo '{PASSED}'")
    assert (outcome.status, outcome.stage) == (Status.INFRA, "scratch")


FULL = """
import resource, sys
from pathlib import Path
from tests.targets.bench import Bench
bench = Bench(Path(sys.argv[1]))
bench.add("big.bin", b"x" * 500_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
outcome = bench.shell(sys.argv[3])
print(outcome.status, outcome.stage, outcome.reason, sep="|")
"""


def full(run_python: RunPython, folder: Path, most_bytes: int, script: str) -> list[str]:
    done = run_python(FULL, folder, most_bytes, script)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("|")


def test_a_disk_too_full_to_lay_out_is_infra(run_python: RunPython, tmp_path: Path) -> None:
    status, stage, reason = full(run_python, tmp_path, 100_000, "true")
    assert (status, stage) == ("infra", "scratch")
    assert reason.startswith("the trial could not be laid out: File too large")


def test_a_disk_too_full_for_the_output_is_infra_and_the_trial_lives_on(
    run_python: RunPython, tmp_path: Path
) -> None:
    script = f"seq 200000; touch '{tmp_path}/lived'; echo '{PASSED}'"
    status, stage, reason = full(run_python, tmp_path, 600_000, script)
    assert (status, stage) == ("infra", "scratch")
    assert reason.startswith("the disk did not take ")
    assert (tmp_path / "lived").exists()


def test_a_result_before_the_disk_was_full_may_not_be_the_last(run_python: RunPython, tmp_path: Path) -> None:
    script = f"echo '{PASSED}'; seq 200000; echo '{{\"status\": \"failed\"}}'"
    assert full(run_python, tmp_path, 600_000, script)[:2] == ["infra", "scratch"]


def test_a_result_file_counts_though_the_disk_did_not_take_the_output(
    run_python: RunPython, tmp_path: Path
) -> None:
    result = '{"nonce": "%s", "status": "passed", "score": 2}'
    script = f"printf '{result}' $KERNELDECK_NONCE > $KERNELDECK_RESULT; seq 200000"
    assert full(run_python, tmp_path, 600_000, script)[0] == "ok"


def test_a_verifier_without_a_score_is_ok(bench: Bench) -> None:
    outcome = bench.shell('echo \'{"status": "passed", "verified": true}\'', needs_score=False)
    assert (outcome.status, outcome.score) == (Status.OK, None)


def test_equal_layouts_share_one_folder(bench: Bench) -> None:
    same = [Layout({"kernel.py": bench.version("1")}) for _ in range(2)]
    other = Layout({"kernel.py": bench.version("2")})
    stage = bench.staging().lay_out((same[0], other, same[1]))
    assert stage.folders[0] == stage.folders[2] != stage.folders[1]
    assert [(folder / "kernel.py").read_text() for folder in stage.folders] == ["1", "2", "1"]
    stage.remove()
    assert bench.staged() == []


def test_a_trial_after_a_failed_one_is_unharmed(bench: Bench) -> None:
    jobs = [bench.job("no-such-program"), bench.job("sh", "-c", "kill -9 $$"), bench.job("echo", PASSED)]
    jobs.insert(2, replace(jobs[1], command=(sys.executable, "-c", "raise SystemExit(PASSED)")))
    assert [outcome.status for outcome in bench.each(*jobs)] == ["infra", "crash", "crash", "ok"]


def test_the_target_can_be_closed_twice_and_used_again(bench: Bench) -> None:
    async def use() -> list[Status]:
        target = LocalTarget(bench.staging(), SCORE)
        await target.close()
        first = await target.run(bench.job("echo", PASSED))
        await target.close()
        await target.close()
        second = await target.run(bench.job("echo", PASSED))
        await target.close()
        return [first.status, second.status]

    assert asyncio.run(use()) == [Status.OK, Status.OK]


def test_a_missing_blob_is_a_storage_fault_of_the_staging(bench: Bench) -> None:
    bench.protect("verifier.py", "1")
    bench.blobs.remove(bench.protected["verifier.py"].sha256)
    with pytest.raises(StorageFault):
        bench.staging().lay_out((Layout({}),))
    assert bench.staged() == []


BURNS = {
    "python": ("python3", "-c", "while True: pass"),
    "of a shell": ("sh", "-c", "python3 -c 'while True: pass'; exit $?"),
    "ignoring it": ("python3", "-c", "import signal as s\ns.signal(s.SIGXCPU, s.SIG_IGN)\nwhile 1: pass"),
}


@pytest.mark.parametrize("burns", BURNS)
def test_more_cpu_time_than_the_limit_is_a_time_out(bench: Bench, burns: str) -> None:
    outcome = bench.run(*BURNS[burns], cpu_s=1.0)
    assert (outcome.status, outcome.reason) == (Status.TIMEOUT, "used more than 1 s of CPU time, ended")


def test_a_kill_by_somebody_else_is_a_crash(bench: Bench) -> None:
    assert bench.shell("kill -9 $$", cpu_s=5.0).status is Status.CRASH
