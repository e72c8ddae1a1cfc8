"""What the terminal can show, and the settings that the screen library reads once, at its import."""

from __future__ import annotations

import locale
from collections.abc import Mapping, MutableMapping

TRUECOLOR, INDEXED, SIXTEEN, NO_COLOR = "truecolor", "256", "16", "none"
_RICH_NAMES = {TRUECOLOR: "truecolor", INDEXED: "256", SIXTEEN: "standard", NO_COLOR: "standard"}
_NO_BLOCKS = frozenset({"linux", "vt100", "vt220", "ansi"})


def over_ssh(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("SSH_CONNECTION"))


def tick_s(environ: Mapping[str, str]) -> float:
    """At most one repaint for changed values in so many seconds."""
    return 0.5 if over_ssh(environ) else 0.25


def depth_of(environ: Mapping[str, str]) -> str:
    """How many colours: truecolor, 256, 16, or none (NO_COLOR is set, whatever to)."""
    if "NO_COLOR" in environ:
        return NO_COLOR
    if environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return TRUECOLOR
    return INDEXED if environ.get("TERM", "").endswith(("-256color", "-256")) else SIXTEEN


def wants_ascii(environ: Mapping[str, str]) -> bool:
    """Whether lines and dots beyond ASCII would not arrive: another encoding, or a bare console."""
    if environ.get("TERM", "") in _NO_BLOCKS:
        return True
    named = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    if not named:
        return locale.getpreferredencoding(False).lower().replace("-", "") != "utf8"
    return "utf8" not in named.lower().replace("-", "")


def settle(environ: MutableMapping[str, str], depth: str) -> None:
    """Set what textual reads at its import; what the person has set already stays."""
    for name in ("COLUMNS", "LINES"):
        environ.pop(name, None)  # it would believe them, also after the terminal was resized
    environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    environ.setdefault("TEXTUAL_FPS", "15" if over_ssh(environ) else "30")
    # Letters and arrows are all that is bound: terminals disagree about the newer key protocol.
    environ.setdefault("TEXTUAL_DISABLE_KITTY_KEY", "1")
    environ.setdefault("TEXTUAL_COLOR_SYSTEM", _RICH_NAMES[depth])
