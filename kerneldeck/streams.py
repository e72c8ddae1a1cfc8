"""The standard streams, fit for use whatever the caller did to them."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

from core.errors import WorkFault

_STREAMS = ("stdin", "stdout", "stderr")
_NEAREST = {"−": "-", "±": "+-", "µ": "u", "×": "x", "…": "...", "–": "-", "≥": ">=", "≤": "<="}


def settle() -> None:
    """Put /dev/null where a stream was closed, and make output survive any character and encoding.

    A closed descriptor would be given to the next file that is opened, a database say, and whatever is
    printed would go into that.
    """
    codecs.register_error("kerneldeck-nearest", _nearest)
    for descriptor, name in enumerate(_STREAMS):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _null(descriptor, "r" if name == "stdin" else "w"))
        elif name != "stdin" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="kerneldeck-nearest")


@contextmanager
def answering() -> Iterator[None]:
    """Whatever is printed inside has reached the reader at the end; one who has gone is no fault.

    WorkFault when standard output cannot be written for another reason, as on a full disk.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        raise WorkFault(
            f"the answer cannot be written to standard output: {error.strerror}",
            "the work itself is done and recorded; see: kerneldeck inspect",
        ) from None


def silence(stream: TextIO) -> None:
    """Send what is still to be written to `stream` nowhere, so that closing it at the end cannot fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _null(descriptor: int, mode: str) -> TextIO:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
    return TextIOWrapper(open(descriptor, f"{mode}b", closefd=False), encoding="utf-8")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """The signs of our own sentences in plain letters, whatever else as a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_NEAREST.get(sign, "?") for sign in wrong), error.end
