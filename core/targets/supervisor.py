"""Runs trials and outlives none of them: a process of its own, forking one watchdog a trial.

Started as `python -I -S supervisor.py`. One JSON object a line on stdin:
    {"id": 1, "argv": [..], "cwd": "..", "env": {..}, "wall_s": 60, "grace_s": 2,
     "stdout": path, "stderr": path}
    {"cancel": 1}
and one JSON object a line on stdout when a trial has ended and nothing of it is left:
    {"id": 1, "exit_code": 0, "signal": null, "ended_by": "itself|timeout|cancel", "duration_s": 0.1,
     "stdout_left_out": 0, "stdout_lost": 0, "left_behind": 0, "survivors": [], "oom_kills": 0}
(bytes left out of the kept file on purpose, and bytes that the disk did not take; processes that had to
be killed after the trial's own one, and those that would not go), or {"id": 1, "failure": "reason",
"stage": "scratch|spawn|lost"} when it could not be started or watched to its end.

When stdin closes (our starter ended, however), every trial is ended and the process exits. When this
process or a watchdog is killed, its trials are ended and reported lost. Standard library only, in Python
3.8's syntax, so that the three files can be sent to another machine as they are.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from capped_file import CHUNK_BYTES
from watchdog import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    REAP_DEADLINE_S,
    Failed,
    Watchdog,
    clear,
    descendants,
    kill_groups,
    prctl,
    signal_each,
    wake_on_signals,
)


class Supervisor:
    """Forks a watchdog a request, and answers for those that cannot."""

    def __init__(self):
        self.watchdogs = {}  # process id: request id
        self.pid = os.getpid()
        self.wake = wake_on_signals()
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def serve(self):
        """Until stdin closes and nothing of any trial is left."""
        unfinished = b""
        while True:
            ready, _, _ = select.select([0, self.wake], [], [])
            clear(self.wake)
            self.see_to_lost(self.reap())
            if 0 not in ready:
                continue
            chunk = os.read(0, CHUNK_BYTES)
            if not chunk:
                return self.end_all()
            *lines, unfinished = (unfinished + chunk).split(b"\n")
            for line in lines:
                self.take(json.loads(line))

    def take(self, request):
        if "cancel" in request:
            asked = [pid for pid, known in self.watchdogs.items() if known == request["cancel"]]
            signal_each(asked, signal.SIGTERM)
        else:
            self.watch(request)

    def watch(self, request):
        # SIGTERM stays blocked until the child can note it, so that an early cancel is not lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pid = os.fork()
        except OSError as error:
            answer(failure(request["id"], "spawn", error.strerror))
        else:
            if pid == 0:
                watchdog_process(request, self.pid)
            self.watchdogs[pid] = request["id"]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def reap(self):
        """Collect ended processes; the requests whose watchdog ended without an answer."""
        lost = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return lost
            if pid == 0:
                return lost
            request_id = self.watchdogs.pop(pid, None)
            if request_id is not None and status != 0:
                lost.append(request_id)

    def see_to_lost(self, lost):
        """End what their trials left, which is ours by adoption, then say so."""
        deadline = time.monotonic() + REAP_DEADLINE_S
        while lost and time.monotonic() < deadline:
            orphans = descendants(self.pid, self.watchdogs)
            if not orphans:
                break
            kill_groups(orphans.values())
            signal_each(orphans, signal.SIGKILL)
            select.select([self.wake], [], [], 0.01)
            clear(self.wake)
            lost += self.reap()
        for request_id in lost:
            answer(failure(request_id, "lost", "its watchdog was ended"))

    def end_all(self):
        """Our starter is gone: end every trial and wait until each watchdog has seen to it."""
        signal_each(list(self.watchdogs), signal.SIGTERM)
        while self.watchdogs:
            self.see_to_lost(self.reap())
            if self.watchdogs:
                select.select([self.wake], [], [], 1.0)
                clear(self.wake)


def watchdog_process(request, starter):
    """In a forked child: supervise, answer, exit; a status above 0 makes the supervisor answer."""
    status = 1
    try:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # or the supervisor's input would outlive it
        watchdog = Watchdog(request, starter)
        if os.getppid() != starter:
            watchdog.cancel_asked = True
        answer(watchdog.run())
        status = 0
    except Failed as failed:
        answer(failure(request["id"], failed.stage, failed))
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def failure(request_id, stage, reason):
    return {"id": request_id, "failure": str(reason)[:400], "stage": stage}


def answer(reply):
    """One line on stdout; below PIPE_BUF, so that watchdogs may share the pipe."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(reply).encode() + b"\n")


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    Supervisor().serve()


if __name__ == "__main__":
    main()
