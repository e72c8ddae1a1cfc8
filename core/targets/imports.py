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
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from core.targets.prefork import Declined
    from core.targets.watchdog import PR_SET_PDEATHSIG, prctl, reset_signals
else:
    from prefork import Declined
    from watchdog import PR_SET_PDEATHSIG, prctl, reset_signals

GPU_DEVICES = "/dev/nvidia"


def forget_modules(names: Iterable[str], folders: Collection[str] = ()) -> None:
    """Our own modules and folders are nobody else's: a module of the same name is to be found."""
    for name in names:
        sys.modules.pop(name, None)
    sys.path[:] = [folder for folder in sys.path if folder not in folders]


def import_all(modules: Sequence[str], within_s: float, gpu_devices: str = GPU_DEVICES) -> None:
    """Import as a program of the user's would, unseen and bounded; Declined says why not to fork now.

    Whatever the modules do to this process ends it at worst: its starter sees that.
    """
    reset_signals()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)  # as Python sets them for a program of its own
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody else ends an import that hangs
    signal.setitimer(signal.ITIMER_REAL, within_s)
    try:
        for module in modules:
            _import(module)
        _decline_touched(gpu_devices)
        _decline_threads()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        prctl(PR_SET_PDEATHSIG, 0)
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


def _open_files() -> set[str]:
    """Paths of all open descriptors and mapped files."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    with open("/proc/self/maps", "rb") as file:
        for line in file:
            found.add(os.fsdecode(line.rstrip(b"\n").split(None, 5)[-1]))
    return found


def _decline_threads() -> None:
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        raise Declined("the imports start threads, which a fork would lose")
    if sys.getfilesystemencoding() != "utf-8":
        raise Declined("the interpreter's file names are not UTF-8")
