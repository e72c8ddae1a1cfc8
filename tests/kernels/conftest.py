"""Shared by the tests of the shipped workspaces."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[2] / "kernels" / "kerneldeck_timing.py"


@pytest.fixture
def timing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The timing file as a process finds it that nobody asked anything."""
    for name in list(os.environ):
        if name.startswith("KERNELDECK_"):
            monkeypatch.delenv(name)
    spec = importlib.util.spec_from_file_location("kerneldeck_timing", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kerneldeck_timing", module)
    spec.loader.exec_module(module)
    return module
