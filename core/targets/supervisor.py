"""Runs trials and outlives none of them: a stdlib-only process of its own, forking one watchdog a trial.

Started as `python -I -S supervisor.py`. One JSON object a line on stdin:
    {"id": 1, "argv": [..], "cwd": "..", "env": {..}, "wall_s": 60, "grace_s": 2,
     "stdout": path, "stderr": path}
    {"cancel": 1}
and one JSON object a line on stdout when a trial has ended and nothing of it is left:
    {"id": 1, "exit_code": 0, "signal": null, "ended_by": "itself|timeout|cancel", "duration_s": 0.1,
     "stdout_bytes": 10, "stderr_bytes": 0, "left_behind": 0, "survivors": [], "oom_kills": 0}
or {"id": 1, "failure": "sentence"} when it could not be started.

When stdin closes (our starter ended, however), every trial is ended and the process exits. The syntax
is kept to Python 3.8 so that the file can be sent to another machine as it is.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time

HEAD_BYTES = 4 << 20
TAIL_BYTES = 256 << 10
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
REAP_DEADLINE_S = 10.0


def prctl(option, value):
    """Linux only; elsewhere orphans that leave the process group are not seen."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class CappedFile:
    """A file that keeps the first HEAD_BYTES and the last TAIL_BYTES of a stream, and counts all."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.total = 0
        self.tail = b""

    def write(self, chunk):
        room = max(0, HEAD_BYTES - self.total)
        self.total += len(chunk)
        if room:
            write_all(self.descriptor, chunk[:room])
        if len(chunk) > room:
            self.tail = (self.tail + chunk[room:])[-TAIL_BYTES:]

    def close(self):
        left_out = self.total - HEAD_BYTES - len(self.tail)
        if left_out > 0:
            write_all(self.descriptor, b"\n[%d bytes left out]\n" % left_out)
        write_all(self.descriptor, self.tail)
        os.close(self.descriptor)


def write_all(descriptor, content):
    """A full disk loses output, not the trial: what cannot be written is dropped."""
    view = memoryview(content)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
                return
            raise


class Watchdog:
    """Supervises one trial from outside its process group until nothing of it is left."""

    def __init__(self, request):
        self.request = request
        self.deadline = time.monotonic() + request["wall_s"]
        self.ended_by = "itself"
        self.cancel_asked = False
        self.status = None
        self.kill_at = None
        self.pid = None
        self.outputs = []  # capped files: stdout, stderr
        self.streams = {}  # descriptors still open, each with its capped file
        self.wake_read, wake_write = os.pipe()
        for end in (self.wake_read, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self.note_cancel)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def note_cancel(self, *_):
        """Only a note: the wake-up pipe makes the loop act on it."""
        self.cancel_asked = True

    def run(self):
        started = time.monotonic()
        oom_before = oom_kills()
        self.start()
        while self.status is None:
            self.wait_for_news()
            self.reap()
            self.enforce()
        left_behind, survivors = self.end_descendants()
        for descriptor, capped in self.streams.items():
            drain(descriptor, capped)
        for capped in self.outputs:
            capped.close()
        return {
            "id": self.request["id"],
            "exit_code": os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else None,
            "signal": os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None,
            "ended_by": self.ended_by,
            "duration_s": time.monotonic() - started,
            "stdout_bytes": self.outputs[0].total,
            "stderr_bytes": self.outputs[1].total,
            "left_behind": left_behind,
            "survivors": survivors,
            "oom_kills": oom_kills() - oom_before,
        }

    def start(self):
        """Fork the trial; OSError with the reason when its command cannot be executed."""
        self.outputs = [CappedFile(self.request["stdout"]), CappedFile(self.request["stderr"])]
        pipes = [os.pipe(), os.pipe()]
        failure_read, failure_write = os.pipe()  # closed by a successful exec
        self.pid = os.fork()
        if self.pid == 0:
            self.become_trial([pipes[0][1], pipes[1][1]], failure_write)
        for end in (pipes[0][1], pipes[1][1], failure_write):
            os.close(end)
        failure = os.read(failure_read, 4096)
        os.close(failure_read)
        if failure:
            os.waitpid(self.pid, 0)
            raise OSError(failure.decode("utf-8", "replace"))
        for (read, _), capped in zip(pipes, self.outputs):
            os.set_blocking(read, False)
            self.streams[read] = capped

    def become_trial(self, outputs, failure):
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            for name in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE):
                signal.signal(name, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            null = os.open(os.devnull, os.O_RDONLY)
            for target, source in enumerate((null, outputs[0], outputs[1])):
                os.dup2(source, target)
            os.chdir(self.request["cwd"])
            os.execvpe(self.request["argv"][0], self.request["argv"], self.request["env"])
        except BaseException as error:
            os.write(failure, str(error).encode("utf-8", "replace")[:4000])
        os._exit(127)

    def wait_for_news(self):
        """Until output, an ended process, a signal or the next deadline; output goes to its file."""
        until = self.deadline if self.kill_at is None else self.kill_at
        ready, _, _ = select.select(
            [self.wake_read, *self.streams], [], [], max(0.0, until - time.monotonic())
        )
        for descriptor in ready:
            if descriptor == self.wake_read:
                self.clear_wake()
            elif not pump(descriptor, self.streams[descriptor]):
                del self.streams[descriptor]
                os.close(descriptor)

    def clear_wake(self):
        with contextlib.suppress(BlockingIOError):
            os.read(self.wake_read, 4096)

    def reap(self):
        """Collect ended processes, adopted ones too; remember how the trial's own one ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status

    def enforce(self):
        """Ask to end on cancel or at the deadline; after the grace period kill."""
        now = time.monotonic()
        if self.kill_at is None and (self.cancel_asked or now >= self.deadline):
            self.ended_by = "cancel" if self.cancel_asked else "timeout"
            self.kill_at = now + self.request["grace_s"]
            self.signal_all(signal.SIGTERM)
        elif self.kill_at is not None and now >= self.kill_at:
            self.kill_at = now + 0.05
            self.signal_all(signal.SIGKILL)

    def signal_all(self, number):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def end_descendants(self):
        """Kill what the trial left behind; how many there were, and those that could not be ended."""
        first = descendants(os.getpid())
        deadline = time.monotonic() + REAP_DEADLINE_S
        left = first
        while left and time.monotonic() < deadline:
            self.signal_all(signal.SIGKILL)
            self.reap()
            left = descendants(os.getpid())
            if left:
                select.select([self.wake_read], [], [], 0.01)
                self.clear_wake()
        return len(first), left


def pump(descriptor, capped):
    """Move what is there into the file; False at the stream's end."""
    try:
        chunk = os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return True
    if chunk:
        capped.write(chunk)
    return bool(chunk)


def drain(descriptor, capped):
    """Read what is still buffered; a stream that somebody else holds open is not waited for."""
    with contextlib.suppress(BlockingIOError):
        while True:
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                return
            capped.write(chunk)


def descendants(root):
    """Living processes below `root`, by /proc; zombies do not count."""
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb") as stat:
                    state, parent = stat.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    parents[int(name)] = int(parent)
    found = []
    frontier = [root]
    while frontier:
        frontier = [pid for pid, parent in parents.items() if parent in frontier]
        found += frontier
    return found


def oom_kills():
    """Processes that the kernel ended for memory in our control group so far; 0 when it cannot be read."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/cgroup") as groups:
            path = next(line.rstrip("\n").split("::", 1)[1] for line in groups if line.startswith("0::"))
        with open(f"/sys/fs/cgroup{path}/memory.events") as events:
            return int(next(line.split()[1] for line in events if line.startswith("oom_kill ")))
    return 0


def answer(reply):
    """One line on stdout; below PIPE_BUF, so that watchdogs may share the pipe."""
    os.write(1, json.dumps(reply).encode() + b"\n")


def watchdog_process(request, starter):
    """In a forked child: supervise, answer, exit."""
    try:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        watchdog = Watchdog(request)
        if os.getppid() != starter:
            watchdog.cancel_asked = True
        answer(watchdog.run())
    except OSError as error:
        answer({"id": request["id"], "failure": str(error)[:1000]})
    finally:
        os._exit(0)


def end_all(watchdogs):
    """Our starter is gone: end every trial and wait until each watchdog has seen to it."""
    for pid in watchdogs.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    for pid in watchdogs.values():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    watchdogs = {}
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "cancel" in request:
            with contextlib.suppress(ProcessLookupError, KeyError):
                os.kill(watchdogs[request["cancel"]], signal.SIGTERM)
            continue
        forget_ended(watchdogs)
        watchdogs[request["id"]] = fork_watchdog(request)
    end_all(watchdogs)


def fork_watchdog(request):
    """SIGTERM stays blocked until the child can note it, so that an early cancel is not lost."""
    starter = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = os.fork()
    if pid == 0:
        watchdog_process(request, starter)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return pid


def forget_ended(watchdogs):
    for known, pid in list(watchdogs.items()):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del watchdogs[known]


if __name__ == "__main__":
    main()
