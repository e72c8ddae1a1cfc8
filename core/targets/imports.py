"""The imports of a parent: unseen, bounded, and declined with the reason where a fork would not do.

Standard library only and Python 3.8's syntax, like `prefork.py`.
"""
# Runs on Python 3.8 and on other people's interpreters: no pathlib.
# ruff: noqa: PTH115, PTH123, PTH208

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import random
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from core.targets.prefork import Declined
    from core.targets.watchdog import (
        PR_SET_CHILD_SUBREAPER,
        PR_SET_PDEATHSIG,
        descendants,
        kill_groups,
        prctl,
        reset_signals,
        signal_each,
    )
else:
    from prefork import Declined
    from watchdog import (
        PR_SET_CHILD_SUBREAPER,
        PR_SET_PDEATHSIG,
        descendants,
        kill_groups,
        prctl,
        reset_signals,
        signal_each,
    )  # fmt: skip

GPU_DEVICES = "/dev/nvidia"
NO_POSITION = ("/dev/null", "/dev/urandom", "/dev/random")  # nothing passes from trial to trial through these
ENDS_WITHIN_S = 5.0


def forget_modules(names: Iterable[str], folders: Collection[str] = ()) -> None:
    """Our own modules and folders are nobody else's: a module of the same name is to be found."""
    for name in names:
        sys.modules.pop(name, None)
    sys.path[:] = [folder for folder in sys.path if folder not in folders]


def imported(
    modules: Sequence[str], within_s: float, ours: Iterable[str], folders: Collection[str]
) -> dict[str, object]:
    """Become a parent, whose standard streams are nobody's: {"ready": True}, or {"declined": why}.

    What imports say is nobody's answer, and our own modules are not theirs.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    forget_modules(ours, folders)
    try:
        import_all(modules, within_s)
    except Declined as declined:
        return {"declined": str(declined)}
    return {"ready": True}


def import_all(modules: Sequence[str], within_s: float, gpu_devices: str = GPU_DEVICES) -> None:
    """Import as a program of the user's would, unseen and bounded; Declined says why not to fork now.

    The working folder is to be an empty one of the imports' own; afterwards it is another.
    Whatever the modules do to this process ends it at worst: its starter sees that.
    """
    reset_signals()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)  # as Python sets them for a program of its own
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody else ends an import that hangs
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # what imports start stays below us
    before = _descriptors()
    drawn = random.getstate()
    signal.setitimer(signal.ITIMER_REAL, within_s)
    try:
        for module in modules:
            _import(module)
        _decline_touched(gpu_devices)
        _decline_shared(before)
        _decline_seeded(drawn)
        _decline_threads()
        if descendants(os.getpid()):
            raise Declined("the imports start processes, which would run beside every trial")
    except Declined:
        _end_processes()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGCONT)  # a trial may have stopped us: we are to see the end of file
        os.chdir("/")
        with contextlib.suppress(Exception):
            sys.stdout.flush()
    gc.collect()
    gc.freeze()  # a trial's collector leaves the memory shared that it does not own


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except BaseException as error:
        words = " ".join(str(error).split())[:200]
        raise Declined(f"{module} could not be imported ({type(error).__name__}: {words})") from None


def _decline_touched(gpu_devices: str) -> None:
    """A context on a GPU does not survive a fork."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():
        raise Declined("the imports start CUDA, which no fork survives")
    device = next((path for path in _open_files() if path.startswith(gpu_devices)), "")
    if device:
        raise Declined(f"the imports open {device}, which no fork survives")


def _decline_shared(before: Mapping[str, str]) -> None:
    """A fork shares them with every other: a trial could leave something there for a later one."""
    opened = [path for number, path in _descriptors().items() if before.get(number) != path]
    kept = next((path for path in opened if path not in NO_POSITION), "")
    if kept:
        name = kept if kept.startswith("/") else f"a {kept.partition(':')[0]}"
        raise Declined(f"the imports keep {name} open, which trials would share")
    if any(rights[1:2] == b"w" and rights[3:4] == b"s" for rights, _ in _maps()):
        raise Declined("the imports map memory that trials would share")


def _end_processes() -> None:
    until = time.monotonic() + ENDS_WITHIN_S
    below = descendants(os.getpid())
    while below and time.monotonic() < until:
        kill_groups(below.values())
        signal_each(below, signal.SIGKILL)
        select.select([], [], [], 0.01)
        below = descendants(os.getpid())


def _open_files() -> set[str]:
    """Paths of all open descriptors and mapped files."""
    return {*_descriptors().values(), *(path for _, path in _maps())}


def _descriptors() -> dict[str, str]:
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def _maps() -> list[tuple[bytes, str]]:
    """Rights and path of each part of our memory."""
    with open("/proc/self/maps", "rb") as file:
        rows = [line.rstrip(b"\n").split(None, 5) for line in file]
    return [(row[1], os.fsdecode(row[-1])) for row in rows]


def _decline_seeded(before: object) -> None:
    """From nothing, trials that import a seed all draw alike; forked, each draws its own numbers."""
    numbers = sys.modules.get("numpy.random")
    if random.getstate() != before or (numbers is not None and _touched(numbers)):
        raise Declined("the imports seed or draw random numbers, which a fork would seed anew")


def _touched(numbers: Any) -> bool:
    """Whether numpy's own generator is no longer as numpy makes it: its position, and the mark of no seed."""
    try:
        (_, key, position, *_), (_, fresh_key, fresh_position, *_) = (
            numbers.get_state(), numbers.RandomState().get_state()
        )  # fmt: skip
        return bool(position != fresh_position or key[0] >> 31 != fresh_key[0] >> 31)
    except Exception:  # another generator was put in its place
        return True


def _decline_threads() -> None:
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        raise Declined("the imports start threads, which a fork would lose")
    if sys.getfilesystemencoding() != "utf-8":
        raise Declined("the interpreter's file names are not UTF-8")
