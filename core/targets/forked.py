"""A forked child becomes what `python FILE …` from nothing would be, save the time of its imports.

From the descriptors to the last flush (`ending.py`) it does what the interpreter does. Where it could not be
the same, the child executes the command instead. Standard library only and Python 3.8's syntax, like
`prefork.py`.
"""
# Runs on Python 3.8 and on other people's interpreters: no pathlib.
# ruff: noqa: PTH109, PTH112, PTH113, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import builtins
import contextlib
import importlib
import os
import signal
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.targets.ending import run_to_end
    from core.targets.prefork import per_trial
else:
    from ending import run_to_end
    from prefork import per_trial

_FROM_NOTHING = ("PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME")


class Parent:
    """What a process was once its imports were done; `become` makes a forked child a trial."""

    def __init__(self, ours: Collection[int]) -> None:
        """`ours` are the descriptors that no import opened."""
        self.kept = open_descriptors() - set(ours)
        self.signals = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self.modules = set(sys.modules)

    def become(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Run `python FILE …` in the working folder and end the process as an interpreter ends.

        What the imports set in the environment stays.
        Returns, with nothing changed, when only an interpreter from nothing would do the same.
        """
        source = self._source(argv[1], env)
        if source is None:
            return
        folder = os.path.dirname(os.path.realpath(argv[1]))
        self._restore_signals()
        os.environ.update({name: value for name, value in env.items() if per_trial(name)})
        _make_main(argv)
        _reseed()
        self._close_others()
        run_to_end(source, self.modules, folder)

    def _source(self, path: str, env: Mapping[str, str]) -> bytes | None:
        if (
            any(env.get(variable) for variable in _FROM_NOTHING)
            or not os.path.isfile(path)
            or path.endswith(".pyc")
        ):
            return None
        folder = os.path.dirname(os.path.realpath(path))
        if not _safe_path() and any(self._shadows(folder, name) for name in os.listdir(folder)):
            return None
        with open(path, "rb") as file:
            source = file.read()
        return None if b"\0" in source else source

    def _shadows(self, folder: str, name: str) -> bool:
        """Whether an import would have found this file instead of what the parent has imported."""
        module, _, ending = name.partition(".")
        if module not in self.modules or module == "__main__":
            return False
        if ending:
            return ending == "py" or ending.endswith(("so", "pyc"))
        return os.path.isdir(os.path.join(folder, name))

    def _restore_signals(self) -> None:
        for number, handler in self.signals.items():
            if handler is not None:
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, handler)
        faulthandler = sys.modules.get("faulthandler")
        if faulthandler is not None and faulthandler.is_enabled():
            faulthandler.disable()
            faulthandler.enable()

    def _close_others(self) -> None:
        """As at exec; what the imports opened they would have opened there, too."""
        for number in open_descriptors() - self.kept:
            with contextlib.suppress(OSError):
                if number > 2 and not os.get_inheritable(number):
                    os.close(number)


def open_descriptors() -> set[int]:
    numbers = {int(name) for name in os.listdir("/proc/self/fd")}
    return {number for number in numbers if os.path.lexists(f"/proc/self/fd/{number}")}


def _safe_path() -> bool:
    return bool(getattr(sys.flags, "safe_path", False))


def _make_main(argv: Sequence[str]) -> None:
    """`__main__`, and what else the interpreter takes from its command line."""
    from importlib.machinery import SourceFileLoader

    path = argv[1]
    sys.argv = list(argv[1:])
    if sys.version_info >= (3, 10):  # noqa: UP036
        sys.orig_argv = list(argv)
    if not _safe_path():
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    importlib.invalidate_caches()
    if sys.version_info >= (3, 9):  # noqa: UP036
        path = os.path.join(os.getcwd(), path)
    module = types.ModuleType("__main__")
    filled = {"__builtins__": builtins, "__file__": path, "__loader__": SourceFileLoader("__main__", path)}
    if sys.version_info < (3, 14):
        filled["__annotations__"] = {}
    if sys.version_info < (3, 15):
        filled["__cached__"] = None
    module.__dict__.update(filled)
    sys.modules["__main__"] = module
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes.__dict__["ORIGINAL_DIR"] = os.getcwd()  # as it would have found it


def _reseed() -> None:
    """Python reseeds its own generator in a forked child; numpy does not."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()
