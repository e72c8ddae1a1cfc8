"""`infer`: from a folder as somebody left it to a workspace's configuration."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from core.errors import ConfigFault
from core.workspace.config import Extras, Files, Objective, WorkspaceConfig
from core.workspace.infer.commands import Commands, build_commands
from core.workspace.infer.findings import Choices, Inference, Notes, Probe
from core.workspace.infer.literals import definitions
from core.workspace.infer.roles import Roles, assign_roles, json_object
from core.workspace.infer.rules import Listing
from core.workspace.infer.runs import first_run, has_samples, listed_space
from core.workspace.infer.score import infer_objective, see
from core.workspace.infer.sources import Folder
from core.workspace.infer.space import infer_space
from core.workspace.needed import needed_files
from core.workspace.templates import TIMING_FILE
from core.workspace.toml_reader import parse_toml
from core.workspace.toml_writer import to_toml

WARN_ABOVE_BYTES = 50_000_000
# Modules from which no program can learn a time or a chance; anything else may.
_PURE = frozenset(
    {"__future__", "abc", "argparse", "ast", "bisect", "collections", "contextlib", "copy", "csv",
     "dataclasses", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "inspect",
     "io", "itertools", "json", "math", "operator", "os", "pathlib", "re", "reprlib", "statistics", "string",
     "struct", "sys", "tempfile", "textwrap", "tomllib", "traceback", "types", "typing",
     "typing_extensions", "zlib"}
)  # fmt: skip
_CHANCE = re.compile(r"urandom|getrandom|times\(")


def infer(
    root: Path,
    probe: Probe | None,
    *,
    benchmark: str = "",
    verifier: str = "",
    config: str = "",
    metric: str = "",
) -> Inference:
    """What the folder at `root` looks like as a workspace; nothing in it is imported or changed.

    `probe` runs its programs (once with `--list-valid`, once for a result) in a copy; None reads only.
    The keywords name files and the score's key where the caller knows better. ConfigFault when the folder
    is missing or empty, has no benchmark or two equally likely ones, a broken JSON config, or a symbolic
    link that leads out of it.
    """
    choices = Choices(benchmark, verifier, config, metric)
    notes = Notes()
    folder = _folder(root)
    size = sum((root / name).stat().st_size for name in folder.files)
    _note_size(folder, size, notes)
    roles = assign_roles(folder, choices, notes)
    _note_broken(folder, roles, notes)
    _note_unlisted(folder, roles, notes)
    commands = build_commands(folder, roles.benchmark, roles.verifier, roles.config, notes)
    inferred = _configuration(folder, roles, commands, probe, choices, notes)
    return Inference(inferred, tuple(notes.findings), tuple(notes.open_points), len(folder.files), size)


def _folder(root: Path) -> Folder:
    if not root.is_dir():
        what = "is no folder" if root.exists() else "does not exist"
        raise ConfigFault(f"{root} {what}", "name the folder of the benchmark and the kernel")
    try:
        files = needed_files(root, ())
    except OSError as error:
        raise ConfigFault(f"{root} cannot be read: {error.strerror}") from None
    if not files:
        raise ConfigFault(
            f"{root} is empty", "start from a shipped workspace: kerneldeck init --template NAME DIR"
        )
    return Folder(root, files)


def _note_size(folder: Folder, size: int, notes: Notes) -> None:
    notes.found("files", f"{len(folder.files)}, {size / 1e6:.1f} MB", "what a trial is given")
    if size > WARN_ABOVE_BYTES:
        notes.open(
            f"The {len(folder.files)} files that each trial is given are {size / 1e6:.0f} MB: "
            "name only those it needs under files.needed"
        )


def _note_broken(folder: Folder, roles: Roles, notes: Notes) -> None:
    for path in (roles.benchmark, roles.verifier, *roles.protected, *roles.mutable):
        fault = folder.source(path).fault if path and path != roles.config else ""
        if fault:
            notes.open(f"{fault}: what it says could not be read; the run decides alone")


def _note_unlisted(folder: Folder, roles: Roles, notes: Notes) -> None:
    """Files that trials are given and nobody seals: a result may come from them unseen."""
    listed = {*roles.protected, *roles.mutable}
    loose = [path for path in folder.files if path not in listed and not _explains(path)]
    if loose:
        some = ", ".join(loose[:5]) + (", …" if len(loose) > 5 else "")
        notes.open(f"{some}: given to trials, in no list; add what a result depends on to files.protected")


def _explains(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name.startswith((".", "license", "readme")) or name.endswith((".md", ".txt", ".rst"))


def _configuration(
    folder: Folder, roles: Roles, commands: Commands, probe: Probe | None, choices: Choices, notes: Notes
) -> WorkspaceConfig | None:
    programs = [roles.benchmark, *(path for path in roles.protected if path != roles.benchmark)]
    others = [path for path in folder.files if path.endswith(".py") and path.count("/") < 2]
    tiers = (programs, roles.mutable, [path for path in others if path not in (*programs, *roles.mutable)])
    listings = listed_space(probe, commands.list_valid, notes) + _space_files(folder, roles)
    knobs, constraints = infer_space(folder, tiers, roles.start, listings, notes)
    result = first_run(probe, commands.modes[commands.first], notes)
    _note_cases(folder, programs, notes)
    objective = infer_objective(see(folder, programs, result), commands.decide, choices.metric, notes)
    if not roles.mutable:
        notes.open(
            "No kernel and no config was found: write under [files] what may change, as mutable = [...]"
        )
    if objective is None or not roles.mutable:
        return None
    inferred = WorkspaceConfig(
        name=folder.root.resolve().name or "workspace",
        objective=_with_determinism(objective, folder, roles, notes),
        files=Files(roles.mutable, roles.protected),
        modes=commands.modes,
        config_file=roles.config,
        knobs=knobs,
        constraints=constraints,
        options=commands.options,
        extras=Extras(timing=TIMING_FILE if TIMING_FILE in programs else "", samples=has_samples(result)),
    )
    return parse_toml(to_toml(inferred))


def _space_files(folder: Folder, roles: Roles) -> list[Listing]:
    """JSON files that the programs read may say the space as well; one that does not parse says nothing."""
    found: list[Listing] = []
    for path in roles.protected:
        with suppress(ConfigFault):
            document = json_object(folder, path, must=False) if path.endswith(".json") else None
            found += [Listing(path, document)] if document else []
    return found


def _with_determinism(objective: Objective, folder: Folder, roles: Roles, notes: Notes) -> Objective:
    """Deterministic when all that judges and is judged is Python that reads no clock and no random source."""
    sources = [folder.source(p) for p in (*roles.protected, *roles.mutable) if not p.endswith(".json")]
    own = {PurePosixPath(source.path).stem for source in sources}
    pure = all(
        source.tree is not None and _imports(source.tree) <= _PURE | own and not _CHANCE.search(source.text)
        for source in sources
    )
    if pure:
        notes.found("deterministic", "true", "no program reads a clock or a random source")
    return replace(objective, deterministic=pure)


def _imports(tree: ast.Module) -> set[str]:
    """The first names of all modules that a source imports, wherever it does; of relative ones none."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Name) and node.id in ("__import__", "exec", "eval", "importlib"):
            found.add(node.id)
    return found


def _note_cases(folder: Folder, programs: list[str], notes: Notes) -> None:
    """Lists of cases as the source writes them, for people to recognise."""
    for source, tree in folder.trees(programs):
        for name, node in definitions(tree.body).items():
            if re.search(r"case|shape|size", name, re.IGNORECASE) and isinstance(
                node, ast.Dict | ast.List | ast.Tuple
            ):
                notes.found("cases", f"{name} = {ast.unparse(node)[:200]}", source.place(node))
