"""A folder's files as text and syntax trees; nothing is imported or executed."""

from __future__ import annotations

import ast
import fnmatch
import posixpath
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.workspace.infer.literals import Literals, definitions

_MOST_BYTES = 1 << 20
_MOST_DEPTH = 100
_WORD = re.compile(r"[\w./*+-]+")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
NATIVE_SUFFIXES = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".cu", ".cl", ".hip", ".metal", ".ptx", ".h", ".hpp", ".cuh", ".inl",
     ".s", ".f90", ".rs", ".zig", ".jl", ".ispc", ".comp", ".glsl", ".wgsl", ".mlir"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """One file's text; `tree` is None for what is not Python or does not parse, and `fault` says why."""

    path: str
    text: str
    tree: ast.Module | None = None
    fault: str = ""

    def place(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}"


class Folder:
    """The files that a trial would need, read when asked for and then kept."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.root = root
        self.files = sorted(files)
        self._known = frozenset(self.files)
        self._sources: dict[str, Source] = {}
        self._names: dict[str, dict[str, ast.expr]] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def executable(self, path: str) -> bool:
        return bool((self.root / path).stat().st_mode & stat.S_IXUSR)

    def source(self, path: str) -> Source:
        if path not in self._sources:
            self._sources[path] = _read(self.root / path, path)
        return self._sources[path]

    def is_python(self, path: str) -> bool:
        suffix = PurePosixPath(path).suffix
        return suffix == ".py" or (not suffix and "python" in self.source(path).text.partition("\n")[0])

    def trees(self, paths: Iterable[str]) -> Iterator[tuple[Source, ast.Module]]:
        """The Python sources among `paths` that parse."""
        for path in paths:
            source = self.source(path)
            if source.tree is not None:
                yield source, source.tree

    def literals(self, path: str) -> Literals:
        """Evaluates expressions of a file: its own module-level names, and those of its local imports."""
        return Literals(self._names_in(path))

    def _names_in(self, path: str) -> dict[str, ast.expr]:
        if path in self._names:
            return self._names[path]
        names = self._names[path] = {}  # what a circular import sees
        tree = self.source(path).tree
        for module, local, attribute in self._imports(path):
            known = self._names_in(module)
            if not attribute:
                names |= {f"{local}.{name}": value for name, value in known.items() if "." not in name}
            elif attribute in known:
                names[local] = known[attribute]
            for name, value in known.items():
                names.setdefault(name, value)
        names.update(definitions(tree.body) if tree else {})
        return names

    def links(self, path: str) -> list[str]:
        """Files of the folder that `path` imports or includes."""
        if self.source(path).tree is not None:
            return list(dict.fromkeys(module for module, _, _ in self._imports(path)))
        if PurePosixPath(path).suffix not in NATIVE_SUFFIXES:
            return []
        return [
            found for name in _INCLUDE.findall(self.source(path).text) for found in self._match(name, path)
        ]

    def mentions(self, path: str) -> list[str]:
        """Files of the folder that the text names: words of string constants in Python, words elsewhere."""
        source = self.source(path)
        texts = [source.text] if source.tree is None else list(_strings(source.tree))
        words = dict.fromkeys(word for text in texts for word in _WORD.findall(text))
        found = [file for word in words for file in self._match(word, path)]
        return [file for file in dict.fromkeys(found) if file != path]

    def closure(self, start: Iterable[str], enter: Callable[[str], bool]) -> list[str]:
        """`start` and all that it imports or includes, directly or not, as far as `enter` allows."""
        found = list(dict.fromkeys(path for path in start if path))
        for path in found:
            found += [other for other in self.links(path) if other not in found and enter(other)]
        return found

    def _imports(self, path: str) -> Iterator[tuple[str, str, str]]:
        """Local modules as (file, name here, attribute of it); the attribute is empty for a whole module."""
        for node in ast.walk(self.source(path).tree or ast.Module([], [])):
            if isinstance(node, ast.Import):
                wanted = [(alias.name, alias.asname or alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                wanted = [self._from(node, alias, path) for alias in node.names]
            else:
                continue
            for name, local, attribute in wanted:
                module = self._module(name, path)
                if module and module != path:
                    yield module, local, attribute

    def _from(self, node: ast.ImportFrom, alias: ast.alias, path: str) -> tuple[str, str, str]:
        local, inner = alias.asname or alias.name, f"{node.module or ''}.{alias.name}".strip(".")
        whole = not node.module or bool(self._module(inner, path))
        return (inner, local, "") if whole else (node.module or "", local, alias.name)

    def _module(self, name: str, importer: str) -> str:
        """The folder's file behind a module name, seen from the importer's folder and from the top."""
        stem = name.replace(".", "/")
        for base in (PurePosixPath(importer).parent, PurePosixPath()):
            for candidate in (f"{stem}.py", f"{stem}/__init__.py"):
                path = str(base / candidate)
                if path in self._known:
                    return path
        return ""

    def _match(self, word: str, path: str) -> list[str]:
        """Files that `word` names, from the folder of `path` or the top; patterns when they have a suffix."""
        word = word.strip("./") if word.endswith(".") else word.removeprefix("./")
        near = posixpath.normpath(PurePosixPath(path).parent / word) if word else ""
        exact = [name for name in (near, word) if name in self._known]
        if exact or "*" not in word or not PurePosixPath(word).suffix[1:].isalnum():
            return exact[:1]
        return [name for name in self.files if fnmatch.fnmatch(name, word) or fnmatch.fnmatch(name, near)]


def _read(file: Path, path: str) -> Source:
    try:
        if file.stat().st_size > _MOST_BYTES:
            return Source(path, "", None, f"{path} is larger than {_MOST_BYTES >> 20} MiB")
        content = file.read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Source(path, "", None, f"{path} is not UTF-8 text at byte {error.start}")
    except OSError as error:
        return Source(path, "", None, f"{path} cannot be read: {error.strerror}")
    python = file.suffix == ".py" or (not file.suffix and "python" in text.partition("\n")[0])
    return _parsed(path, text) if python else Source(path, text)


def _parsed(path: str, text: str) -> Source:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, path)
    except SyntaxError as error:
        return Source(path, text, None, f"{path}:{error.lineno or 1}: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return Source(path, text, None, f"{path}: {error}")
    deep = _too_deep(tree)
    return Source(path, text, None, f"{path}:{deep}: nested too deep") if deep else Source(path, text, tree)


def _too_deep(tree: ast.Module) -> int:
    """Line of the first expression nested deeper than recursion over it could follow; 0 for none."""
    level: list[ast.AST] = [tree]
    for _ in range(_MOST_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return min((getattr(node, "lineno", 1) for node in level), default=0)


def _strings(tree: ast.Module) -> Iterator[str]:
    """String constants other than docstrings."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value
