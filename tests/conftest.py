"""Shared by all tests: in CI a skipped test is a failed one, so that nothing is passed over unseen."""

from __future__ import annotations

import ast
import functools
import gc
import os
import signal
from collections.abc import Callable, Generator
from typing import ParamSpec, TypeVar

import pytest

P = ParamSpec("P")
T = TypeVar("T")

# Whoever starts the tests in the background may have them ignore SIGINT, and every program they start
# would inherit that; a handled signal is back at its default in a started program.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Commands start as they do where they are installed: thousands of them, and none compiles our sources anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def undisturbed(parse: Callable[P, T]) -> Callable[P, T]:
    """`parse` without a garbage collection in its middle.

    A finalizer that raises has its traceback made, which parses too; CPython before 3.11.9 counts the depth
    of both parses together and raises a SystemError in the outer one.
    """

    @functools.wraps(parse)
    def whole(*args: P.args, **named: P.kwargs) -> T:
        collects = gc.isenabled()
        gc.disable()
        try:
            return parse(*args, **named)
        finally:
            if collects:
                gc.enable()

    return whole


ast.parse = undisturbed(ast.parse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
