"""Which file of a folder is the benchmark, the verifier, the config, the kernel, and which are protected."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from core.errors import ConfigFault
from core.words import JsonObject
from core.workspace.config import CONFIG_NAME
from core.workspace.infer.findings import Choices, Notes
from core.workspace.infer.keys import ConfigKeys
from core.workspace.infer.programs import ANSWERS, CHECKS, chosen_file, find_benchmark, find_verifier, words
from core.workspace.infer.sources import NATIVE_SUFFIXES, Folder

_KERNELS = {"kernel", "kernels", "candidate", "solution", "submission", "impl", "ops", "op"}
_CONFIGS = {"config", "plan", "kernel", "params", "parameters", "tuning", "launch", "knobs", "settings"}
_OUTPUTS = {"trace", "result", "results", "out", "output", "log", "history", "report", "summary"}
_GPU_SOURCE = re.compile(r"@triton\.jit|@\w*\.?jit\b|load_inline|__global__|RawKernel|@cute\.")
_LOADS_FILES = re.compile(
    r"spec_from_file|import_module|runpy|exec\(|FileLoader|\.load\(|subprocess|\bcdll|CDLL"
)
_INPUTS = {".json", ".yaml", ".yml", ".toml", ".csv", ".txt", ".npy", ".npz", ".bin", ".mk", ".cmake", ".sh",
           ""}  # fmt: skip
_MOST_CONFIG_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Roles:
    """Paths relative to the folder; `start` is the config file's content."""

    benchmark: str
    verifier: str
    config: str
    start: JsonObject
    mutable: tuple[str, ...]
    protected: tuple[str, ...]


def assign_roles(folder: Folder, choices: Choices, notes: Notes) -> Roles:
    """The roles of the folder's files; ConfigFault without one clear benchmark and for a broken config."""
    benchmark = chosen_file(folder, choices.benchmark, "benchmark") or find_benchmark(folder, notes)
    verifier = chosen_file(folder, choices.verifier, "verifier") or find_verifier(folder, benchmark, notes)
    config, start = _config(folder, choices, benchmark, verifier, notes)
    notes.found("benchmark", benchmark, "given" if choices.benchmark else benchmark)
    if verifier:
        notes.found("verifier", verifier, "given" if choices.verifier else verifier)
    if config:
        notes.found("config", config, "given" if choices.config else config)
    mutable, protected = _split(folder, [path for path in (benchmark, verifier) if path], config, notes)
    files = ([config] if config else []) + [path for path in mutable if path != config]
    return Roles(benchmark, verifier, config, start, tuple(files), tuple(protected))


def _config(
    folder: Folder, choices: Choices, benchmark: str, verifier: str, notes: Notes
) -> tuple[str, JsonObject]:
    """The JSON file that a candidate overlays, and what it holds; ("", {}) when none stands out."""
    given = chosen_file(folder, choices.config, "config")
    if given:
        return given, json_object(folder, given, must=True) or {}
    readers = folder.closure([benchmark, verifier], lambda path: True)
    named = {path for reader in readers for path in folder.mentions(reader)}
    scored = [(_config_points(path, path in named), path) for path in folder.files if path.endswith(".json")]
    best = _best_objects(folder, [(points, path) for points, path in scored if points >= 2])
    if len(best) == 1:
        return best[0], json_object(folder, best[0], must=True) or {}
    if best:
        notes.open(f"{' and '.join(best)} look equally like the config: choose with --config FILE")
    else:
        notes.open(
            "No JSON config was found, so there are no knobs: name one with --config FILE, "
            'or write [config] with file = "…"'
        )
    return "", {}


def _best_objects(folder: Folder, scored: list[tuple[int, str]]) -> list[str]:
    """The files with the most points that hold JSON objects; lesser ones are not even opened."""
    for points in sorted({points for points, _ in scored}, reverse=True):
        equal = [path for other, path in scored if other == points]
        objects = [path for path in equal if _holds_values(json_object(folder, path, must=False))]
        if objects:
            return objects
    return []


def _holds_values(config: JsonObject | None) -> bool:
    """Whether it can be a config: an object that is empty or has single values, not only lists."""
    return config is not None and (not config or bool(ConfigKeys.of(config).start))


def _config_points(path: str, named: bool) -> int:
    names = words(path)
    if names & (_OUTPUTS | ANSWERS | {"case", "cases", "package", "tsconfig", "manifest"}):
        return 0
    return 4 * named + 2 * bool(names & _CONFIGS) - path.count("/")


def json_object(folder: Folder, path: str, must: bool) -> JsonObject | None:
    """The object a JSON file holds, None for another value; ConfigFault with the place when it is broken."""
    file = folder.root / path
    try:
        if file.stat().st_size > _MOST_CONFIG_BYTES and not must:
            return None
        value = json.loads(file.read_bytes())
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise ConfigFault(f"{place}: not valid JSON: {error.msg}", "correct it and run init again") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise ConfigFault(f"{path}: not valid JSON: {error}", "correct it and run init again") from None
    except OSError as error:
        raise ConfigFault(f"{path} cannot be read: {error.strerror}") from None
    if must and not isinstance(value, dict):
        raise ConfigFault(
            f"{path} holds no JSON object", "a config is an object of knobs; choose with --config FILE"
        )
    return value if isinstance(value, dict) else None


def _split(folder: Folder, judges: list[str], config: str, notes: Notes) -> tuple[list[str], list[str]]:
    """Kernel sources that may change, and the programs with what they import and read that may not."""
    protected = folder.closure(judges, lambda path: not _is_kernel(folder, path))
    kernels: list[str] = []
    for path in protected:
        for other in [*folder.links(path), *folder.mentions(path)]:
            if other in protected or other in kernels or other in (config, CONFIG_NAME):
                continue
            if _is_judge(other) or not _is_source(folder, other):
                protected += [other] if _is_input(other) else []
            elif (
                not folder.is_python(other)
                or _is_kernel(folder, other)
                or _LOADS_FILES.search(folder.source(path).text)
            ):
                kernels.append(other)
    kernels = kernels or _unnamed_kernels(folder, judges, protected, config, notes)
    mutable = folder.closure(kernels, lambda path: path not in protected or path in kernels)
    if mutable:
        notes.found("kernel", ", ".join(mutable), judges[0])
    return mutable, [path for path in protected if path not in mutable]


def _unnamed_kernels(
    folder: Folder, judges: list[str], protected: list[str], config: str, notes: Notes
) -> list[str]:
    """Sources that look like a kernel although no program names them; without a config their imports."""
    found = [
        path
        for path in folder.files
        if path not in protected
        and words(path) & _KERNELS
        and _is_source(folder, path)
        and not _is_judge(path)
    ]
    if not found and not config:
        found = [path for path in protected if path not in judges and not _is_judge(path)]
    if found:
        notes.open(
            f"{', '.join(found)} may be the kernel, though it does not show how the benchmark uses it: "
            "correct files.mutable if it is not"
        )
    return found


def _is_kernel(folder: Folder, path: str) -> bool:
    """Whether an imported module is the thing measured, not a part of the program that measures."""
    if _is_judge(path):
        return False
    return bool(words(path) & _KERNELS) or bool(_GPU_SOURCE.search(folder.source(path).text))


def _is_judge(path: str) -> bool:
    stem, names = PurePosixPath(path).stem.lower(), words(path)
    judging = CHECKS | ANSWERS | {"case", "cases", "harness", "timing", "driver", "tests"}
    return "bench" in stem or "verif" in stem or bool(names & judging)


def _is_source(folder: Folder, path: str) -> bool:
    return PurePosixPath(path).suffix in NATIVE_SUFFIXES | {".py"} or folder.is_python(path)


def _is_input(path: str) -> bool:
    """Whether a file that a program names is a part of the judgement: what it writes and configs are not."""
    suffix = PurePosixPath(path).suffix
    return not words(path) & (_OUTPUTS | _CONFIGS) and suffix in _INPUTS | {".py"} | NATIVE_SUFFIXES
