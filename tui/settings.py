"""The person's settings of the app: tui.toml in the folder of Kerneldeck's settings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sessions.faults import shown
from tui.notify import wrong_setting
from tui.paint import THEMES

_KINDS: dict[str, type] = {"theme": str, "ascii": bool, "mouse": bool, "notify": str, "keymap": dict}


@dataclass(frozen=True, slots=True)
class Settings:
    """What tui.toml says; `faults` are sentences about what in it cannot be used."""

    theme: str = "auto"
    ascii: bool | None = None  # None: as the terminal's encoding says
    mouse: bool = False
    notify: str = ""  # nothing is told
    keymap: Mapping[str, object] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def settings_path(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME", "/")) / ".config"
    return folder / "kerneldeck" / "tui.toml"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings; where one cannot be used the default stands, and a sentence says so."""
    path = settings_path(environ)
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        return Settings(faults=(f"{shown(path)} cannot be read: {_first_line(error)}",))
    faults = [fault for name, value in written.items() if (fault := _fault(path.name, name, value))]
    good = {name: value for name, value in written.items() if not _fault(path.name, name, value)}
    return Settings(**good, faults=tuple(faults))


def _fault(file: str, name: str, value: object) -> str:
    if name not in _KINDS:
        return f"{file}: there is no setting {name!r}; there are {', '.join(_KINDS)}"
    if not isinstance(value, _KINDS[name]):
        return f"{file}: {name} is no {'table' if _KINDS[name] is dict else _KINDS[name].__name__}"
    if name == "theme" and value not in THEMES:
        return f"{file}: theme {value!r} is not one of {', '.join(THEMES)}"
    if name == "notify" and isinstance(value, str) and (wrong := wrong_setting(value)):
        return f"{file}: {wrong}"
    return ""


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
