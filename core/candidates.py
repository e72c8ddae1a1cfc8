"""Candidates: the workspace's mutable files with an overlay on its config file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from core.errors import ConfigFault
from core.records import Candidate, FileSet, FileVersion
from core.store import Blobs
from core.words import JsonObject, Overlay, Scalar


def read_config(files: FileSet, blobs: Blobs, config_file: str) -> JsonObject:
    """The JSON object in the config file; ConfigFault with its place when it is broken or missing."""
    if config_file not in files:
        raise ConfigFault(f"{config_file} is missing", "put it back, or restore the best: kerneldeck restore")
    try:
        value = json.loads(blobs.get(files[config_file].sha256))
    except json.JSONDecodeError as error:
        raise ConfigFault(f"{config_file}:{error.lineno}: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigFault(f"{config_file}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigFault(f"{config_file}: holds no JSON object")
    return value


def with_overlay(base: FileSet, blobs: Blobs, config_file: str, overlay: Overlay) -> Candidate:
    """The candidate that `overlay` (dotted keys) makes of `base`; its config is kept as a blob.

    A config that the overlay does not change keeps its bytes, so that the candidate is the base itself.
    """
    if not overlay:
        return Candidate(base, {})
    before = read_config(base, blobs, config_file)
    after = overlaid(before, overlay)
    if after == before and _same_types(after, before):
        return Candidate(base, dict(overlay))
    content = _written(after, like=blobs.get(base[config_file].sha256))
    version = FileVersion(blobs.put(content), base[config_file].executable)
    return Candidate({**base, config_file: version}, dict(overlay))


def _written(config: JsonObject, like: bytes) -> bytes:
    """The config as JSON, laid out as the file was: on one line, or indented by what its lines are."""
    indented = re.search(rb"\n([ \t]+)\S", like)
    indent = indented[1].decode() if indented else 2 if like.strip().count(b"\n") else None
    end = "\n" if like.endswith(b"\n") else ""
    try:
        return (json.dumps(config, indent=indent, ensure_ascii=False) + end).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can say and UTF-8 cannot
        return (json.dumps(config, indent=indent) + end).encode()


def overlaid(config: JsonObject, overlay: Mapping[str, Scalar]) -> JsonObject:
    """A copy of `config` with the dotted keys of `overlay` set; a key that has dots itself is that key."""
    copy: JsonObject = json.loads(json.dumps(config))
    for name, value in overlay.items():
        node = copy
        if name in copy:
            copy[name] = value
            continue
        *parents, last = name.split(".")
        for key in parents:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise ConfigFault(f"{name}: {key} is no object in the config file")
        node[last] = value
    return copy


def value_at(config: Mapping[str, object], name: str) -> Scalar | None:
    """The value of a dotted key, or None when it is absent or no scalar."""
    node: object = config
    for key in [name] if name in config else name.split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, bool | int | float | str) else None


def _same_types(after: object, before: object) -> bool:
    """JSON equality that tells true from 1."""
    return json.dumps(after, sort_keys=True) == json.dumps(before, sort_keys=True)
