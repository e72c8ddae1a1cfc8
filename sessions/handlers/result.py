"""update_result_json: the outcome of a piece of work, in a file that others read."""

from __future__ import annotations

import json
from pathlib import Path

from core.errors import ArgumentFault, StorageFault
from core.operations.declaration import Answer
from core.words import JsonObject
from sessions.session import Session

TEMP_SUFFIX = ".kerneldeck.tmp"


async def update_result_json(session: Session, arguments: JsonObject) -> Answer:
    """Merge score, verification and notes into the file; what else it holds stays."""
    path = _path(session, arguments["result_path"])
    content = _existing(path)
    objective = session.engine.config.objective
    best = session.store.best(session.engine.contract_id)
    score = arguments["score"] if arguments["score"] is not None else arguments["best_us"]
    if score is None and best is not None:
        score = best.anchor
    if score is not None:
        metrics = content.setdefault("metrics", {})
        if not isinstance(metrics, dict):
            raise ArgumentFault(f"{path.name}: metrics is no object", "correct the file first")
        metrics[objective.metric] = score
        metrics["score"] = score
    if arguments["verified"] is None:
        arguments["verified"] = best is not None and score == best.anchor
    for name in ("status", "verified", "summary"):
        if arguments[name] is not None:
            content[name] = arguments[name]
    for name in ("verification", "reflection"):
        if arguments[name] is not None:
            content[name] = {**content.get(name, {}), **arguments[name]}
    for name in ("used_harness_tools", "used_harness_artifacts"):
        if arguments[name] is not None:
            content[name] = list(dict.fromkeys([*content.get(name, []), *arguments[name]]))
    _write(path, content)
    return Answer({"outcome": "written", "path": str(path), "result": content})


def _path(session: Session, given: str) -> Path:
    path = Path(given).expanduser()
    path = path if path.is_absolute() else session.workspace.root / path
    files = session.workspace.config.files
    inside = path.resolve()
    for name in (*files.mutable, *files.protected):
        if inside == (session.workspace.root / name).resolve():
            raise ArgumentFault(f"{given} is a file of the workspace, not a result", "name another file")
    return path


def _existing(path: Path) -> JsonObject:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise ArgumentFault(
            f"{path}: cannot be read as JSON: {error}", "correct it or name another file"
        ) from None
    if not isinstance(content, dict):
        raise ArgumentFault(f"{path}: holds no JSON object", "correct it or name another file")
    return content


def _write(path: Path, content: JsonObject) -> None:
    """By a temporary file beside it, so that a full disk leaves the old one whole."""
    temporary = path.with_name(path.name + TEMP_SUFFIX)
    try:
        temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        temporary.replace(path)
    except (OSError, ValueError) as error:
        temporary.unlink(missing_ok=True)
        raise StorageFault(f"{path} cannot be written: {error}", "free space, or name another file") from None
