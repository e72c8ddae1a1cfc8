"""Shared by all tests: in CI a skipped test is a failed one, so that nothing is passed over unseen."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest

# Whoever starts the tests in the background may have them ignore SIGINT, and every program they start
# would inherit that; a handled signal is back at its default in a started program.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
