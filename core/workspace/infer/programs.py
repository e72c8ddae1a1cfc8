"""Which program of a folder is the benchmark and which the verifier."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from core.errors import ConfigFault
from core.workspace.infer.findings import Notes
from core.workspace.infer.sources import Folder
from core.workspace.infer.written import own_nodes

INTERPRETERS = {".py": "python3", ".sh": "bash", ".bash": "bash", ".js": "node", ".jl": "julia",
                ".rb": "ruby", ".pl": "perl", ".lua": "lua", ".R": "Rscript"}  # fmt: skip
CHECKS = frozenset({"check", "checker", "correctness", "validate", "validator", "judge", "test"})
ANSWERS = frozenset({"reference", "ref", "golden", "oracle", "expected", "naive", "baseline"})
_TIMES = {"perf", "timing", "time", "measure", "profile", "run", "eval", "evaluate", "score", "main"}
_PRINTS_JSON = re.compile(r"json\.dump|JSON\.stringify|to_json|\\?\"(cases|status|score)\\?\"\s*:|--json")
_MOST_DEPTH = 2


def words(path: str) -> set[str]:
    """The lower-case words of a file's name without its suffix."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", PurePosixPath(path).stem)}


def chosen_file(folder: Folder, path: str, role: str) -> str:
    name = str(PurePosixPath(path)) if path else ""
    if name and name not in folder:
        raise ConfigFault(
            f"{role} {path!r} is no file of {folder.root}", "name one relative to the workspace's folder"
        )
    return name


def find_benchmark(folder: Folder, notes: Notes) -> str:
    ranked = _ranked(folder, _benchmark_points, least=4)
    if not ranked:
        raise ConfigFault(
            f"no benchmark was found in {folder.root}: no program there is named like one or prints JSON",
            "name it with --benchmark FILE; it must print a JSON object with the score on standard output",
        )
    best = [path for points, path in ranked if points == ranked[0][0]]
    if len(best) > 1:
        best = _direct(folder, best)
    if len(best) > 1:
        raise ConfigFault(
            f"{' and '.join(best)} look equally like the benchmark", f"choose with --benchmark {best[0]}"
        )
    others = [path for _, path in ranked if path != best[0]]
    if others:
        notes.found("also like a benchmark", ", ".join(others), "their names and what they print")
    return best[0]


def _ranked(folder: Folder, points_of: Callable[[Folder, str], int], least: int) -> list[tuple[int, str]]:
    """Programs with at least `least` points, the most and then the shallowest first."""
    programs = [path for path in folder.files if path.count("/") < _MOST_DEPTH and _is_program(folder, path)]
    scored = [(points_of(folder, path) - path.count("/"), path) for path in programs]
    return sorted((pair for pair in scored if pair[0] >= least), key=lambda pair: (-pair[0], pair[1]))


def _direct(folder: Folder, paths: list[str]) -> list[str]:
    """Of a wrapper and the program it calls the program; of a module and its importer the importer."""
    called = {other for path in paths for other in folder.mentions(path) if not folder.is_python(path)}
    imported = {other for path in paths for other in folder.links(path)}
    direct = [path for path in paths if path not in imported and (not called & set(paths) or path in called)]
    return direct or paths


def _is_program(folder: Folder, path: str) -> bool:
    suffix = PurePosixPath(path).suffix
    if suffix == ".py" or (not suffix and folder.executable(path) and folder.is_python(path)):
        source = folder.source(path)
        return bool(source.fault) or (source.tree is not None and _runs_something(source.tree))
    return suffix in INTERPRETERS or (not suffix and folder.executable(path))


def _runs_something(tree: ast.Module) -> bool:
    """Whether running the file does anything: it has a main guard, or a call outside its functions."""
    return any(
        (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
        for node in own_nodes(tree)
    )


def _benchmark_points(folder: Folder, path: str) -> int:
    names, text = words(path), folder.source(path).text
    stem = PurePosixPath(path).stem.lower()
    other = names & (CHECKS | ANSWERS | {"kerneldeck"}) or ("kernel" in names and "bench" not in stem)
    if "verif" in stem or other:
        return 0
    points = 6 if "bench" in stem else 2 if names & _TIMES else 0
    points += stem in ("bench", "benchmark")
    return points + 2 * bool(_PRINTS_JSON.search(text)) + 2 * ("--mode" in text)


def find_verifier(folder: Folder, benchmark: str, notes: Notes) -> str:
    ranked = [(points, path) for points, path in _ranked(folder, _verifier_points, 5) if path != benchmark]
    best = [path for points, path in ranked if points == ranked[0][0]]
    if len(best) > 1:
        notes.open(f"{' and '.join(best)} look equally like the verifier: choose with --verifier FILE")
        return ""
    if not best:
        notes.open(
            "No verifier was found: runs count as correct when the benchmark says so; "
            "name one with --verifier FILE or add verifier = [...] to [modes.…]"
        )
    return best[0] if best else ""


def _verifier_points(folder: Folder, path: str) -> int:
    stem, text = PurePosixPath(path).stem.lower(), folder.source(path).text
    answers = bool(_PRINTS_JSON.search(text)) or '"verified"' in text or "bench" in text
    if "verif" in stem:
        return 6 + answers
    named = "--json" in text or "verified" in text or "bench" in text
    return 4 + named if words(path) & CHECKS and answers and "bench" not in stem else 0
