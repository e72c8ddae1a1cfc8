"""Runs trials and outlives none of them: a process of its own, forking one watchdog a trial.

Started as `python -I -S supervisor.py`. One JSON object a line on stdin:
    {"id": 1, "argv": [..], "cwd": "..", "env": {..}, "wall_s": 60, "grace_s": 2, "cpu_s": null,
     "stdout": path, "stderr": path}
    {"cancel": 1}
and one JSON object a line on stdout when a trial has ended and nothing of it is left:
    {"id": 1, "exit_code": 0, "signal": null, "ended_by": "itself|timeout|cpu|cancel", "duration_s": 0.1,
     "stdout_left_out": 0, "stdout_lost": 0, "left_behind": 0, "survivors": [], "oom_kills": 0}
(bytes left out of the kept file on purpose, and bytes that the disk did not take; processes that had to
be killed after the trial's own one, and those that would not go), or {"id": 1, "failure": "reason",
"stage": "scratch|spawn|lost"} when it could not be started or watched to its end.

Started as `python supervisor.py --import SECONDS MODULE…` by the interpreter that the trials' commands mean,
it first imports the modules and says {"ready": true}, or {"declined": "why"} and ends; its trials are forked
with these modules loaded instead of executed (see `prefork.py`).

When stdin closes (our starter ended, however), every trial is ended and the process exits. When this
process or a watchdog is killed, its trials are ended and reported lost. Standard library only, in Python
3.8's syntax, so that the files can be sent to another machine as they are.
"""

import contextlib
import json
import os
import select
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from capped_file import CHUNK_BYTES
from wards import Wards
from watchdog import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    Failed,
    Watchdog,
    clear,
    prctl,
    signal_each,
)

OURS = ("capped_file", "watchdog", "wards", "prefork", "imports", "ending", "forked")


class Supervisor:
    """Forks a watchdog a request, and answers for those that cannot."""

    def __init__(self, inbox=0, outbox=1, parent=None):
        self.inbox = inbox
        self.outbox = outbox
        self.parent = parent
        self.wards = Wards()  # watchdogs, named by their requests
        self.watchdogs = self.wards.names
        self.wake = self.wards.wake
        self.pid = os.getpid()

    def serve(self):
        """Until stdin closes and nothing of any trial is left."""
        unfinished = b""
        while True:
            ready, _, _ = select.select([self.inbox, self.wake], [], [])
            clear(self.wake)
            self.tell_lost()
            if self.inbox not in ready:
                continue
            chunk = os.read(self.inbox, CHUNK_BYTES)
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
            self.answer(failure(request["id"], "spawn", error.strerror))
        else:
            if pid == 0:
                self.watchdog_process(request)
            self.watchdogs[pid] = request["id"]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def tell_lost(self):
        for request_id in self.wards.lost():
            self.answer(failure(request_id, "lost", "its watchdog was ended"))

    def end_all(self):
        """Our starter is gone: end every trial and wait until each watchdog has seen to it."""
        signal_each(list(self.watchdogs), signal.SIGTERM)
        while self.watchdogs:
            self.tell_lost()
            if self.watchdogs:
                select.select([self.wake], [], [], 1.0)
                clear(self.wake)

    def watchdog_process(self, request):
        """In a forked child: supervise, answer, exit; a status above 0 makes the supervisor answer."""
        status = 1
        try:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, self.inbox, inheritable=False)  # or the supervisor's input would outlive it
            watchdog = Watchdog(request, self.pid, self.parent)
            if os.getppid() != self.pid:
                watchdog.cancel_asked = True
            self.answer(watchdog.run())
            status = 0
        except Failed as failed:
            self.answer(failure(request["id"], failed.stage, failed))
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def answer(self, reply):
        """One line on the outbox; below PIPE_BUF, so that watchdogs may share the pipe."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.outbox, json.dumps(reply).encode() + b"\n")


def failure(request_id, stage, reason):
    return {"id": request_id, "failure": str(reason)[:400], "stage": stage}


def supervisor_with(within_s, modules):
    """One whose trials are forked with these modules loaded; None, and that was said, when they cannot be."""
    import forked
    import imports

    inbox, outbox = os.dup(0), os.dup(1)
    said = imports.imported(modules, within_s, OURS, [os.path.dirname(os.path.abspath(__file__))])
    parent = forked.Parent([inbox, outbox])
    supervisor = Supervisor(inbox, outbox, parent)
    supervisor.answer(said)
    return supervisor if "ready" in said else None


def main():
    if sys.argv[1:2] == ["--import"]:
        supervisor = supervisor_with(float(sys.argv[2]), sys.argv[3:])
    else:
        supervisor = Supervisor()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if supervisor is not None:
        supervisor.serve()


if __name__ == "__main__":
    main()
