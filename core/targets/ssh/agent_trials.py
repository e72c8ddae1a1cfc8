"""The trials that lie in the scratch folder: started, watched, collected, swept, forgotten.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH102, PTH104, PTH108, PTH109, PTH110, PTH112, PTH114, PTH115, PTH123, PTH208

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from core.targets.forked import Parent
    from core.targets.regular_file import read_regular
    from core.targets.remove_tree import remove_tree
    from core.targets.ssh.agent_doors import Doors, knock, listen
    from core.targets.ssh.agent_keeper import SPARE, Keeper, keeper_process, write_outcome
    from core.targets.ssh.agent_scratch import fault_of
    from core.targets.ssh.agent_store import Store
    from core.targets.ssh.agent_tree import Tree
    from core.targets.ssh.wire import Fault, Json
    from core.targets.watchdog import signal_each
else:
    from agent_doors import Doors, knock, listen
    from agent_keeper import SPARE, Keeper, keeper_process, write_outcome
    from agent_scratch import fault_of
    from agent_store import Store
    from agent_tree import Tree
    from regular_file import read_regular
    from remove_tree import remove_tree
    from watchdog import signal_each
    from wire import Fault

MOST_RESULT_BYTES = 64 << 20
MOST_WANTED_BYTES = 256 << 20
SWEEP_WITHIN_S = 10.0
UNFINISHED_S = 60.0
SLACK_S = 120.0  # laying out, looking at what was left, clearing up
_WAITS = (("lock", "wait_s"), ("look", "deadline_s"), ("prefork", "within_s"))
KEPT_S = 7 * 86400.0  # what nobody collected
_ID = re.compile("[0-9a-f]{8,64}")


def home_of(trial: object) -> str:
    if not isinstance(trial, str) or not _ID.fullmatch(trial):
        raise Fault("spawn", f"{ascii(trial)[:80]} is no trial's id")
    return f"trials/{trial}"


class Begun:
    """A trial whose folder stands, and whose keeper is still to be forked."""

    def __init__(self, home: str, request: Json, umask: int, door: socket.socket, alive: int) -> None:
        """`request` holds the trees' specifications."""
        self.home = home
        self.request = request
        self.umask = umask
        self.door = door
        self.alive = alive

    def fork(self, parent: Parent | None = None) -> int:
        """Fork the keeper, which forks the trial when `parent` is this process; its process id.

        0 when none can be forked: why is an outcome.
        """
        trees = [Tree(Store(), spec) for spec in self.request["trees"]]
        doors = Doors(self.door, self.request["lease_s"])
        keeper = Keeper(self.home, self.request, trees, doors, parent)
        pid = 0
        try:
            pid = os.fork()
            if pid == 0:
                keeper_process(keeper, self.door, self.alive, self.umask)
        except OSError as error:
            words = f"no process can be started: {error.strerror}"
            with suppress(OSError):
                write_outcome(self.home, {"failure": words, "stage": "spawn"})
        self.leave()
        return pid

    @contextmanager
    def written(self) -> Iterator[int]:
        """A descriptor of the request, for `taken_over` in another process."""
        path = f"{self.home}/.request"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.unlink(path)
            with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
                json.dump(self.request, file)
            os.lseek(descriptor, 0, os.SEEK_SET)
            yield descriptor
        finally:
            os.close(descriptor)

    @classmethod
    def taken_over(cls, home: str, umask: int, door: socket.socket, alive: int, written: int) -> Begun:
        with open(written, encoding="utf-8") as file:
            return cls(home, json.load(file), umask, door, alive)

    def leave(self) -> None:
        """Who keeps the trial has its lock and its door."""
        os.close(self.alive)
        self.door.close()


def begin(trial: str, request: Json, about: Json, umask: int) -> tuple[Begun, socket.socket]:
    """Make the trial's folder; the connection to its keeper-to-be ends with the outcome."""
    home = home_of(trial)
    beside = f"trials/.new-{trial}"  # nobody sees a trial before its lock is held
    told = {**about, "over_s": time.monotonic() + _longest_s(request)}
    try:
        os.mkdir(beside, 0o700)
        with open(f"{beside}/about.json", "x", encoding="utf-8") as file:
            json.dump(told, file)
        alive = os.open(f"{beside}/alive", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(alive, fcntl.LOCK_EX)
        door = listen(f"{beside}/door")
        connection = knock(f"{beside}/door")
        os.rename(beside, home)
    except OSError as error:
        _remove(beside)
        raise fault_of(error, "the trial could not be laid out") from None
    return Begun(home, request, umask, door, alive), connection


def _longest_s(request: Json) -> float:
    """By when a keeper that works has long ended, whether or not anybody was connected."""
    limits = [
        *((request.get(part) or {}).get(name, 0.0) for part, name in _WAITS),
        (request.get("look") or {}).get("deadline_s", 0.0),
        *(request[name] for name in ("wall_s", "grace_s", "lease_s")),
    ]
    return sum(map(float, limits)) + SLACK_S


def hand_on(ended: list[str], trial: str) -> None:
    """What one of these trials left of its tree goes to the one that is about to start."""
    for each in ended:
        with suppress(OSError):
            os.rename(f"{home_of(each)}/{SPARE}", f"{home_of(trial)}/{SPARE}")
            return


def state(trial: str) -> str:
    """running, ended, lost (its watchdog is gone and left no outcome) or unknown."""
    home = home_of(trial)
    if os.path.exists(f"{home}/outcome.json"):
        return "ended"
    if not os.path.isdir(home):
        return "unknown"
    return "running" if _watched(home) else "lost"


def _watched(home: str) -> bool:
    """Whether the process that keeps the trial lives: it holds a lock as long as it does."""
    try:
        descriptor = os.open(f"{home}/alive", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def connection_to(trial: str) -> socket.socket | None:
    try:
        return knock(f"{home_of(trial)}/door")
    except OSError:
        return None


def outcome(trial: str) -> Json:
    """What the trial's watchdog wrote; when it wrote nothing, what is left is ended and that is said."""
    home = home_of(trial)
    written = _read_outcome(home)
    if written is None:
        end_what_is_left(trial)
        written = {"failure": f"its watchdog was ended{_restarted(home)}", "stage": "lost"}
    return written


def _read_outcome(home: str) -> Json | None:
    try:
        found = json.loads(read_regular(Path(f"{home}/outcome.json"), MOST_RESULT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _restarted(home: str) -> str:
    return "" if about(home).get("boot") == boot_id() else ": the machine was restarted"


def about(home: str) -> Json:
    try:
        found = json.loads(read_regular(Path(f"{home}/about.json"), 1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def boot_id() -> str:
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""


def parts(trial: str, wanted: int) -> Iterator[tuple[str, str, int]]:
    """Name, path and most bytes of everything a trial may have left for its client."""
    home = home_of(trial)
    for name in ("result", "stdout", "stderr"):
        yield name, f"{home}/{name}", MOST_RESULT_BYTES
    for name in sorted(os.listdir(home)) if os.path.isdir(home) else ():
        kind, _, number = name.partition(".")
        if kind == "changed" or (kind == "wanted" and int(number) < wanted):
            yield name, f"{home}/{name}", MOST_WANTED_BYTES


def open_part(path: str, most_bytes: int) -> tuple[str, int]:
    """What stands there (file, missing, link, other, large, or unreadable: why) and a descriptor, or -1."""
    if os.path.islink(path):
        return "link", -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return "missing", -1
    except OSError as error:
        return f"unreadable: {error.strerror}", -1
    status = os.fstat(descriptor)
    if (status.st_mode & 0o170000) == 0o100000 and status.st_size <= most_bytes:
        return "file", descriptor
    os.close(descriptor)
    return "large" if (status.st_mode & 0o170000) == 0o100000 else "other", -1


def forget(trial: str) -> bool:
    """Remove a trial that has ended; False while it runs."""
    if state(trial) == "running" or _watched(home_of(trial)):
        return False
    _remove(home_of(trial))
    return True


def _remove(path: str) -> None:
    with suppress(OSError):
        if os.path.lexists(path):
            remove_tree(Path(path))


def listing() -> list[Json]:
    """Every trial here: its id, state, what its client said of it, and seconds since it began."""
    rows = []
    for trial in sorted(os.listdir("trials")):
        if _ID.fullmatch(trial):
            told = about(f"trials/{trial}")
            age_s = max(0.0, time.time() - told.get("began_s", time.time()))
            rows.append({"trial": trial, "state": state(trial), "age_s": age_s, "about": told.get("about")})
    return rows


def sweep() -> list[str]:
    """End what is left of trials whose watchdog is gone or stuck, and leave them an outcome; their ids.

    Outcomes that nobody collected for a week go.
    """
    for trial in os.listdir("trials"):
        if _ID.fullmatch(trial) and _is_overdue(f"trials/{trial}") and state(trial) == "running":
            _end_keeper(trial)
    rows = listing()
    for row in rows:
        if row["state"] == "ended" and row["age_s"] > KEPT_S:
            forget(row["trial"])
    lost = [row["trial"] for row in rows if row["state"] == "lost"]
    for trial in lost:
        told = outcome(trial)
        with suppress(OSError), open(f"{home_of(trial)}/outcome.json", "w", encoding="utf-8") as file:
            json.dump(told, file)
        for name in ("work", "work.part"):
            _remove(f"{home_of(trial)}/{name}")
    _remove_unfinished()
    return lost


def _is_overdue(home: str) -> bool:
    """By the clock that counts from the machine's start, and so only where it was not restarted."""
    told = about(home)
    over_s = told.get("over_s")
    return isinstance(over_s, float) and told.get("boot") == boot_id() and time.monotonic() > over_s


def _end_keeper(trial: str) -> None:
    """Kill whoever holds the trial's lock, as a keeper does that was stopped: it answers to nothing else."""
    lock = f"{os.getcwd()}/{home_of(trial)}/alive"
    until = time.monotonic() + SWEEP_WITHIN_S
    seen: set[int] = set()
    while _watched(home_of(trial)) and time.monotonic() < until:
        having = {pid for pid in _process_ids() if pid != os.getpid() and _uses(pid, lock)}
        signal_each(having & seen, signal.SIGKILL)  # another agent has it open only while it looks
        seen = having
        select.select([], [], [], 0.01)


def _remove_unfinished() -> None:
    """What agents that have ended were just writing."""
    for folder in ("blobs", "manifests"):
        for name in os.listdir(folder):
            writer = name.split("-")[1] if name.startswith(".tmp-") else ""
            if writer.isdigit() and not os.path.exists(f"/proc/{writer}"):
                _remove(f"{folder}/{name}")
    for name in os.listdir("trials"):
        with suppress(OSError):
            if name.startswith(".new-") and time.time() - os.lstat(f"trials/{name}").st_mtime > UNFINISHED_S:
                _remove(f"trials/{name}")


def end_what_is_left(trial: str) -> None:
    """Kill the trial's processes: those that carry its result file in their environment, or are in its tree.

    One that was forked from a parent has the parent's environment, and the tree as its working folder.
    """
    home = f"{os.getcwd()}/{home_of(trial)}"
    marker = f"KERNELDECK_RESULT={home}/".encode("utf-8", "surrogateescape")
    until = time.monotonic() + SWEEP_WITHIN_S
    while time.monotonic() < until:
        others = [pid for pid in _process_ids() if pid != os.getpid()]
        left = [pid for pid in others if marker in _environment(pid) or _uses(pid, f"{home}/work")]
        if not left:
            return
        signal_each(left, signal.SIGKILL)
        select.select([], [], [], 0.01)


def _process_ids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _uses(pid: int, folder: str) -> bool:
    """Whether the process works in the folder, or has something open there."""
    names = [f"/proc/{pid}/cwd"]
    with suppress(OSError):
        names += [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
    for name in names:
        with suppress(OSError):
            if f"{os.readlink(name)}/".startswith(f"{folder}/"):
                return True
    return False


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""
