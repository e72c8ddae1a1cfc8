"""What is sent to a remote machine to become the agent there, and the one line that boots it.

The line is the only thing a remote shell ever reads of ours: no newline, quote, backslash, `$` or `!`
inside its single quotes, so that bash, dash, zsh, fish, tcsh and busybox take it alike. The program in it
is spelled in hexadecimal; it first prints the marker, and only after that the client sends anything.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from core.errors import TargetFault

DEFAULT_SCRATCH = "~/.cache/kerneldeck"
DEFAULT_PYTHON = "python3"
MARK = b"\x1e"
_HERE = Path(__file__).parent
# In the order in which they import each other.
_MODULES = (
    _HERE / "wire.py",
    _HERE.parent / "capped_file.py",
    _HERE.parent / "watchdog.py",
    _HERE.parent / "wards.py",
    _HERE.parent / "prefork.py",
    _HERE.parent / "imports.py",
    _HERE.parent / "ending.py",
    _HERE.parent / "forked.py",
    _HERE.parent / "regular_file.py",
    _HERE.parent / "remove_tree.py",
    *(
        _HERE / f"agent{name}.py"
        for name in (
            "_scratch", "_store", "_spare", "_tree", "_lock", "_gpu", "_doors", "_keeper", "_trials",
            "_quota", "_facts", "_errands", "_outbox", "_prefork", "_runs", "",
        )
    ),
)  # fmt: skip
_PYTHON = re.compile(r"python3|/[A-Za-z0-9_./+-]+")

_LOADER = """
import sys, types
for name, source in SOURCES:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, "kerneldeck/" + name + ".py", "exec"), module.__dict__)
sys.modules["agent"].main(globals())
"""

_BOOT = """
import hashlib,os,sys,zlib
root=os.path.abspath(os.path.expanduser(bytes.fromhex("{scratch}")))
v=sys.version_info
b=b""
try:
 with open(os.path.join(root,b"agent-{sha256}"),"rb") as f:b=f.read()
except OSError:pass
have=hashlib.sha256(b).hexdigest()=="{sha256}"
os.write(1,("{mark}{marker} %d.%d %s"%(v[0],v[1],have and "have" or "need")).encode()+bytes([10]))
if v<(3,8):sys.exit(3)
if not have:
 b=b""
 while len(b)<{size}:
  c=os.read(0,{size}-len(b))
  if not c:sys.exit(4)
  b+=c
exec(zlib.decompress(b),dict(ROOT=root,BUNDLE=b,SHA="{sha256}"))
"""


@dataclass(frozen=True, slots=True)
class Boot:
    """How one agent is started: where it keeps things, by which Python, and its own marker."""

    scratch: str = DEFAULT_SCRATCH
    python: str = DEFAULT_PYTHON
    marker: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        if not _PYTHON.fullmatch(self.python):
            hint = "give an absolute path of letters, digits and _ . / + -"
            raise TargetFault("config", f"{self.python!r} is no path of a Python interpreter", hint)
        if not self.scratch.startswith(("/", "~")) or "\0" in self.scratch:
            hint = "give an absolute path, or one that begins with ~"
            raise TargetFault("config", f"{self.scratch!r} is no path of a scratch folder", hint)

    @property
    def line(self) -> str:
        """The command for the remote shell."""
        program = _BOOT.format(
            scratch=self.scratch.encode("utf-8", "surrogateescape").hex(),
            sha256=bundle_sha256(),
            size=len(bundle()),
            mark=MARK.decode(),
            marker=self.marker,
        )
        return f"exec {self.python} -X utf8 -I -S -u -c 'exec(bytes.fromhex(\"{program.encode().hex()}\"))'"


@cache
def bundle() -> bytes:
    """The agent's modules as one deflated program."""
    sources = [(path.stem, path.read_text(encoding="utf-8")) for path in _MODULES]
    return zlib.compress(f"SOURCES = {sources!r}\n{_LOADER}".encode(), 9)


@cache
def bundle_sha256() -> str:
    return hashlib.sha256(bundle()).hexdigest()
