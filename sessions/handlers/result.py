"""update_result_json: the outcome of a piece of work, in a file that others read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from core.errors import ArgumentFault, StorageFault
from core.operations.declaration import Answer
from core.words import JsonObject
from sessions.atomic_file import remove_quietly, sync_folder, write_beside
from sessions.session import Session, home_expanded
from sessions.standing import standing_score
from sessions.workspace_files import TEMP_PREFIX, TEMP_SUFFIX

T = TypeVar("T", dict[str, Any], list[Any])


async def update_result_json(session: Session, arguments: JsonObject) -> Answer:
    """Merge score, verification and notes into the file; what else it holds stays."""
    path = _path(session, arguments["result_path"])
    content = _existing(path)
    _put_score(session, path, content, arguments)
    for name in ("status", "verified", "summary"):
        if arguments[name] is not None:
            content[name] = arguments[name]
    for name in ("verification", "reflection"):
        if arguments[name] is not None:
            content[name] = _part(path, content, name, dict) | arguments[name]
    for name in ("used_harness_tools", "used_harness_artifacts"):
        if arguments[name] is not None:
            content[name] = list(dict.fromkeys([*_part(path, content, name, list), *arguments[name]]))
    _write(path, content)
    return Answer({"outcome": "written", "path": str(path), "result": content})


def _put_score(session: Session, path: Path, content: JsonObject, arguments: JsonObject) -> None:
    """The score as it was given, else the best's; whether it is verified, unless that was given."""
    best = session.store.best(session.engine.contract_id)
    known = standing_score(session.store, best) if best is not None else None
    score = arguments["score"] if arguments["score"] is not None else arguments["best_us"]
    score = known if score is None else score
    if score is not None:
        metric = session.engine.config.objective.metric
        content["metrics"] = _part(path, content, "metrics", dict) | {metric: score, "score": score}
    if arguments["verified"] is None:
        content["verified"] = score is not None and score == known


def _part(path: Path, content: JsonObject, name: str, kind: type[T]) -> T:
    """A field of the file as it is, empty when absent; ArgumentFault when it holds something else."""
    value = content.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        wanted = "object" if kind is dict else "list"
        raise ArgumentFault(f"{path.name}: {name} is no {wanted}", "correct the file, or name another one")
    return value


def _path(session: Session, given: str) -> Path:
    path = session.workspace.root / home_expanded(given)
    files = session.workspace.config.files
    inside = path.resolve()
    for name in (*files.mutable, *files.protected):
        if inside == (session.workspace.root / name).resolve():
            raise ArgumentFault(f"{given} is a file of the workspace, not a result", "name another file")
    if session.place.folder in inside.parents:
        raise ArgumentFault(f"{given} lies in the state folder", "name a file outside it")
    if inside.exists() and not inside.is_file():
        raise ArgumentFault(f"{given} is no regular file", "name another file")
    return inside


def _existing(path: Path) -> JsonObject:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, OSError, RecursionError) as error:
        raise ArgumentFault(
            f"{path}: cannot be read as JSON: {error}", "correct it or name another file"
        ) from None
    if not isinstance(content, dict):
        raise ArgumentFault(f"{path}: holds no JSON object", "correct it or name another file")
    return content


def _write(path: Path, content: JsonObject) -> None:
    """By a temporary file beside it, so that a full disk or a kill leaves the old one whole."""
    try:
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        _put_in_place(path, text.encode())
    except ValueError as error:
        raise ArgumentFault(f"{path.name}: {error}", "every number must be finite") from None
    except OSError as error:
        raise StorageFault(
            f"{path} cannot be written: {error.strerror}", "free space, or name another file"
        ) from None


def _put_in_place(path: Path, content: bytes) -> None:
    # Named as the journal's temporary files are: recovery removes what a kill leaves.
    temporary = write_beside(path.parent, TEMP_PREFIX, TEMP_SUFFIX, content)
    try:
        temporary.replace(path)
    except OSError:
        remove_quietly(temporary)
        raise
    sync_folder(path.parent)
