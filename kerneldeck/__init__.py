"""Kerneldeck: a terminal workbench for tuning GPU kernels.

This module is the one place that knows where the packages `core`, `sessions` and `tui` lie: in an
installed wheel inside this folder, in a checkout beside it. It puts that place first on `sys.path`,
so that another package named `core` on the path is never taken for ours.
"""

import sys

# `python -m` looks for modules in the current folder first. That is somebody's workspace, and a
# random.py in it must not become ours; so this comes before any other import.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    del sys.path[0]

from pathlib import Path

_HERE = Path(__file__).resolve().parent
INSTALL_ROOT = _HERE if (_HERE / "core").is_dir() else _HERE.parent

sys.path.insert(0, str(INSTALL_ROOT))

from core.version import VERSION as __version__  # noqa: E402 (the place is known only now)

__all__ = ["INSTALL_ROOT", "__version__"]
