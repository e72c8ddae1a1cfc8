"""How a forked trial runs and ends: as a program does in an interpreter of its own, whatever it did there.

A trial may replace, patch or delete what it finds in its process; an interpreter ends all the same. So what
the ending needs is bound when this is imported, builtins included, and no step of it stops the next one.
Standard library only and Python 3.8's syntax, like `prefork.py`.
"""
# What the trial can reach is not used here: no contextlib, whose functions use the trial's builtins.
# ruff: noqa: SIM105

from __future__ import annotations

import atexit
import builtins
import ctypes
import gc
import io
import signal
import sys
import weakref
from os import _exit, getpid, kill
from typing import TYPE_CHECKING

globals()["__builtins__"] = dict(vars(builtins))

if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Collection
    from typing import NoReturn, TextIO

FLUSH_FAILED = 120
_SIGINT = int(signal.SIGINT)
_SIG_DFL = signal.SIG_DFL
_handle = signal.signal
_run_exit_functions = atexit._run_exitfuncs
_show = sys.__excepthook__
_flush_c = ctypes.CDLL(None).fflush
_collect = gc.collect
_objects = gc.get_objects
_reference = weakref.ref
_MISSING = object()


def run_to_end(source: bytes, imported: Collection[str], folder: str) -> NoReturn:
    """Run the program in the module `__main__` and end the process with its exit code or signal.

    Taken apart at the end are that and the modules below `folder`, not those that were `imported` before.
    """
    try:
        streams = (sys.stdout, sys.stderr)
        main = _reference(sys.modules["__main__"])  # nobody here may hold what the trial is to let go of
        code = _run(source, sys.modules["__main__"].__dict__)
        _end(code, streams, main, imported, folder)
    finally:
        _exit(1)  # nobody above us is the trial's


def _run(source: bytes, names: dict[str, object]) -> int:
    """The exit code that the interpreter would have had before its ending, negative for a signal."""
    try:
        exec(compile(source, str(names["__file__"]), "exec", dont_inherit=True), names)
    except BaseException as error:
        ended = _without_our_frame(error)
    else:
        return 0
    return _code_of(ended) if isinstance(ended, SystemExit) else _told(ended)


def _without_our_frame(error: BaseException) -> BaseException:
    trace = error.__traceback__
    return error.with_traceback(trace.tb_next if trace else None)


def _quietly(step: Callable[[], object]) -> None:
    """As in an interpreter's own ending, what one step raises keeps no later one from its turn.

    How the trial ended is decided by then; there is nobody left to tell.
    """
    try:
        step()
    except BaseException:
        pass


def _code_of(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF if -(1 << 63) <= error.code < 1 << 63 else 0xFF
    _quietly(lambda: sys.stdout.flush())
    _quietly(lambda: sys.stderr.write(f"{error.code}\n"))
    return 1


def _told(error: BaseException) -> int:
    """Say what was not caught; the code."""
    _quietly(lambda: sys.stdout.flush())
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        _quietly(lambda: sys.stderr.write("sys.excepthook is missing\n"))
        hook = _show
    try:
        hook(type(error), error, error.__traceback__)
    except SystemExit as left:
        return _code_of(left)
    except BaseException as failed:
        _tell_failed_hook(_without_our_frame(failed), error)
    return -_SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _tell_failed_hook(failed: BaseException, error: BaseException) -> None:
    _quietly(lambda: sys.stderr.write("Error in sys.excepthook:\n"))
    _quietly(lambda: _show(type(failed), failed, failed.__traceback__))
    _quietly(lambda: sys.stderr.write("\nOriginal exception was:\n"))
    _quietly(lambda: _show(type(error), error, error.__traceback__))


def _end(
    code: int,
    streams: tuple[TextIO, ...],
    main: weakref.ref[types.ModuleType],
    imported: Collection[str],
    folder: str,
) -> NoReturn:
    """What an interpreter does at its end, but for taking apart the modules of others."""
    _wait_for_threads()
    _quietly(_run_exit_functions)
    flushed = _flush_standard()
    _quietly(lambda: _take_apart(main, imported, folder))
    _quietly(_write_unclosed)
    for stream in (getattr(sys, "__stdout__", None), getattr(sys, "__stderr__", None), *streams):
        if stream is not None and not _is_closed(stream):
            _quietly(stream.flush)
    _quietly(lambda: _flush_c(None))
    if not flushed:
        _exit(FLUSH_FAILED)
    if code < 0:
        _quietly(lambda: _handle(-code, _SIG_DFL))
        _quietly(lambda: kill(getpid(), -code))
    _exit(code & 0xFF)


def _wait_for_threads() -> None:
    try:
        threading = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()
    except BaseException as error:
        failed = error
        _quietly(lambda: _show(type(failed), failed, failed.__traceback__))


def _is_closed(stream: object) -> bool:
    """Of a stream of the trial's own making, too, which need not say."""
    try:
        return bool(getattr(stream, "closed", False))
    except BaseException:
        return False


def _flush_standard() -> bool:
    """Whether the output could be written."""
    flushed = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None or _is_closed(stream):
            continue
        try:
            stream.flush()
        except BaseException as error:
            flushed = False
            if name == "stdout":
                words = f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}\n"
                _quietly(lambda: sys.stderr.write(words))  # noqa: B023
    return flushed


def _take_apart(main: weakref.ref[types.ModuleType], imported: Collection[str], folder: str) -> None:
    """Let go of the trial's own modules: `__del__` is called, and what they never closed."""
    modules = [main]
    own = ["__main__", *(name for name in list(sys.modules) if _is_own(name, imported, folder))]
    for name in own:
        try:
            modules.append(_reference(sys.modules.pop(name)))
        except (TypeError, KeyError):
            pass
    _collect()
    for still in modules:
        names = getattr(still(), "__dict__", {})
        for name in sorted(names, key=lambda name: not name.startswith("_")):
            if name != "__builtins__":
                names[name] = None
    _collect()


def _is_own(name: str, imported: Collection[str], folder: str) -> bool:
    place = getattr(sys.modules.get(name), "__file__", None)
    return name != "__main__" and name not in imported and str(place).startswith(folder + "/")


def _write_unclosed() -> None:
    """Files that others than the trial's own modules hold: an interpreter would have let go of those, too."""
    for each in _objects():
        if issubclass(type(each), (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            _quietly(each.flush)
