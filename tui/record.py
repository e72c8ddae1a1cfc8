"""The state of record as the app reads it: the knobs of candidates, and how many trials there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import KerneldeckError
from core.words import JsonObject, Overlay
from core.workspace.toml_reader import read_workspace
from sessions.state_dir import locate
from tui.showing import HistoryFacts, WorkspaceFacts

if TYPE_CHECKING:
    from core.records import FileVersion
    from sessions.history import HistoryReader, Scope
    from sessions.store import SessionStore

_MOST_KEPT = 20_000
_AT_ONCE = 500


class Record:
    """Reads only, at any time; the store is opened when there is one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._store: SessionStore | None = None
        self._knobs: dict[str, Overlay] = {}
        self._config_file = ""

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def facts(self) -> WorkspaceFacts:
        """What the workspace's files say now."""
        try:
            config = read_workspace(self.root).config
        except KerneldeckError as fault:
            return WorkspaceFacts(fault=fault.sentence)
        return WorkspaceFacts(config, _current(self.root / config.config_file) if config.config_file else {})

    def history(self) -> HistoryFacts:
        try:
            store = self._opened()
            row = store and store.database.row("SELECT COUNT(*) AS n FROM trials")
        except KerneldeckError as fault:
            return HistoryFacts(fault=fault.sentence)
        return HistoryFacts(int(row["n"]) if row else 0)

    def history_reader(self, contract_id: str) -> HistoryReader | None:
        """Reads all trials, comparing those of that contract; None while there is nothing to read."""
        from sessions.history import HistoryReader

        store = self._opened()
        return None if store is None else HistoryReader(store, self.scope(contract_id))

    def scope(self, contract_id: str) -> Scope:
        """What the history is read for under that contract; KerneldeckError without a readable workspace."""
        from sessions.history import Scope

        return Scope.of(contract_id, read_workspace(self.root).config)

    def knobs(self, candidates: Iterable[str]) -> Mapping[str, Overlay]:
        """The configuration that each of these holds, whatever the files say now.

        Of a content that is no longer kept only what the candidate sets; of an unknown candidate nothing.
        """
        wanted = list(dict.fromkeys(candidates))
        missing = [one for one in wanted if one not in self._knobs]
        for start in range(0, len(missing), _AT_ONCE):
            self._read(missing[start : start + _AT_ONCE])
        return {one: self._knobs.get(one, {}) for one in wanted}

    def _read(self, missing: list[str]) -> None:
        if len(self._knobs) > _MOST_KEPT:
            self._knobs.clear()
        marks = ",".join("?" * len(missing))
        try:
            store = self._opened()
            if store is None:
                return
            sql = f"SELECT id, files, overlay FROM candidates WHERE id IN ({marks})"
            found = store.database.rows(sql, missing)
        except KerneldeckError:
            return  # the pane shows the rows without knobs; the history tells the fault
        from sessions.rows import files_of

        for row in found:
            held = _held(store, files_of(row["files"]).get(self._config_file))
            self._knobs[row["id"]] = {**held, **json.loads(row["overlay"])}

    def _opened(self) -> SessionStore | None:
        if self._store is None:
            from sessions.store import open_read  # after the first picture, like all that it needs

            config = read_workspace(self.root).config
            self._config_file = config.config_file
            self._store = open_read(locate(self.root, config.state_dir))
        return self._store


def _held(store: SessionStore, version: FileVersion | None) -> Overlay:
    """The configuration in a kept content; nothing when it is kept no more."""
    try:
        return {} if version is None else _dots(store.blobs.get(version.sha256))
    except KerneldeckError:
        return {}


def _current(path: Path) -> Overlay:
    """The knobs as the configuration file has them, dotted; nothing when it cannot be read."""
    try:
        return _dots(path.read_bytes())
    except OSError:
        return {}


def _dots(content: bytes) -> Overlay:
    try:
        written = json.loads(content)
    except ValueError:
        return {}
    return dict(_dotted(written, "")) if isinstance(written, dict) else {}


def _dotted(value: JsonObject, prefix: str) -> Iterable[tuple[str, bool | int | float | str]]:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _dotted(inner, f"{prefix}{name}.")
        elif isinstance(inner, bool | int | float | str):
            yield f"{prefix}{name}", inner
