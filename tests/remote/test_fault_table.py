"""docs/remote-faults.md is complete and true: every stage, every sentence of the code, tests that exist."""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.targets.ssh.stages import failure_stage
from core.words import STAGES

REPO = Path(__file__).resolve().parents[2]
DOCUMENT = REPO / "docs" / "remote-faults.md"
TESTS = REPO / "tests" / "remote"
SOURCES = [
    *sorted((REPO / "core" / "targets" / "ssh").glob("*.py")),
    REPO / "core" / "targets" / "watchdog.py",
    REPO / "sessions" / "where.py",
]
FAULTS = {"TargetFault", "SshFault", "Fault", "Failed"}
HOLE = "…"
WORKS = "works"
COLUMNS = 6
MOST_ROWS = 70

# What only a program could say that speaks the protocol wrongly: nobody can do anything about it but us.
INTERNAL = {
    "… was asked before hello": "the agent is greeted first",
    "the agent knows no request …": "requests are ours",
    "the agent cannot make sense of a request: …: …": "requests are ours",
    "the agent failed: …: …": "an error of ours in a child of the agent",
    "a helper process on the remote machine was ended": "somebody killed a child of the agent",
    "… names no GPU": "a lock is named by a UUID that nvidia-smi gave, or by `cpu`",
    "… is to be protected and is not in the tree": "trees are made with their protected files",
    "a content is announced under what is no SHA-256": "hashes are ours",
    "a list of files is named by what is no SHA-256": "hashes are ours",
    "what is said of … is no file": "lists of files are ours",
    "a piece of a file arrived out of its place": "streams are ours",
    "there is no folder to run it in": "a trial has a folder",
    "there is no command to run": "the toml's reader refuses an empty command",
    "… is no trial's id": "ids are ours",
    "the agent asks for a content that was never offered": "an agent that is not ours",
    "the agent goes on asking for files that it was sent": "an agent that is not ours",
    "… was not opened yet": "a target is opened before its facts are asked for",
    "its watchdog failed: …: …": "an error of ours in the process that keeps a trial",
    "… was not connected for this": "calls that run nothing do not connect",
    "the supervisor process was ended": "of the local target; a trial here has no such starter",
}
# Calls whose sentence comes from elsewhere, where it has a row.
PASSED_ON = {
    ("agent_keeper.py", "outcome"): "the watchdog's and the agent's faults",
    ("agent_keeper.py", "_refused"): "the agent's faults",
    ("agent_scratch.py", "fault_of"): "what it was doing is in the calls of fault_of",
    ("host.py", "_found_well"): "agent_gpu's sentences",
    ("health.py", "_look_at_gpus"): "agent_gpu's sentences",
    ("link.py", "_fault"): "why the link was lost",
    ("link.py", "_fault_in"): "the agent's faults",
    ("remote_trials.py", "ended"): "the keeper's faults",
    ("target.py", "_run_once"): "the fault's own sentence",
    ("watchdog.py", "_start"): "the system's own words; told with the command's name",
}


@dataclass(frozen=True)
class Row:
    stage: str
    coarse: str
    said: str
    cells: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def sentences(self) -> list[str]:
        return [collapsed(span) for span in re.findall(r"`([^`]+)`", self.said)]


def rows() -> list[Row]:
    found = []
    stage = coarse = ""
    for line in DOCUMENT.read_text().splitlines():
        heading = re.fullmatch(r"## (\w+): .* \(`failure_stage`: `(\w+)`\)", line)
        if heading:
            stage, coarse = heading.groups()
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if line.startswith("|") and not set(line) <= set("|-: ") and cells[0] != "Fault":
            shown, _, comment = cells[-1].partition("<!--")
            tests = tuple(re.findall(r"test_\w+\.py::test_\w+", comment))
            works = cells[1].startswith(WORKS)
            found.append(Row("–" if works else stage, coarse, cells[1], (*cells[:-1], shown.strip()), tests))
    return found


def collapsed(sentence: str) -> str:
    return re.sub(f"{HOLE}+", HOLE, sentence)


@dataclass(frozen=True)
class Said:
    """A sentence of the code: its stage ("" when that is not a word in the call) and its fixed words."""

    place: tuple[str, str]  # file and function
    stage: str
    sentence: str | None


Function = ast.FunctionDef | ast.AsyncFunctionDef


def said_by_the_code() -> list[Said]:
    found = []
    for path in SOURCES:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, Function):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call):
                        found += _said(path.name, function, node)
                    elif isinstance(node, ast.Dict):
                        found += _written(path.name, function, node)
    return found


def _said(file: str, function: Function, call: ast.Call) -> list[Said]:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    place = (file, function.name)
    if name in FAULTS and len(call.args) >= 2:
        return [Said(place, _word(call.args[0]), each) for each in sentences(call.args[1], function)]
    if name == "Outcome" and ast.unparse(call.args[0]) == "Status.INFRA":
        return [Said(place, _word(call.args[2]), each) for each in sentences(call.args[1], function)]
    if name == "fault_of" and len(call.args) >= 2:
        return [Said(place, "scratch", f"{each}: {HOLE}") for each in sentences(call.args[1], function)]
    return []


def _written(file: str, function: Function, node: ast.Dict) -> list[Said]:
    """A failure in a trial's outcome, as its keeper writes it."""
    row = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    if not {"failure", "stage"} <= set(row):
        return []
    place = (file, function.name)
    return [Said(place, _word(row["stage"]), each) for each in sentences(row["failure"], function)]


def _word(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def sentences(node: ast.expr, function: Function) -> list[str | None]:
    """The texts that the expression may be, with … for what is filled in; None for what is not seen here."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        parts = [_part(part, function) for part in node.values]
        texts = [collapsed("".join(chosen)) for chosen in itertools.product(*parts)]
        return [text if re.search(r"\w\w", text) else None for text in texts]
    if isinstance(node, ast.Subscript):
        return sentences(node.value, function)
    if isinstance(node, ast.IfExp):
        return [*sentences(node.body, function), *sentences(node.orelse, function)]
    if isinstance(node, ast.Name):
        given = [
            each.value
            for each in ast.walk(function)
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == node.id
        ]
        return [text for each in given for text in sentences(each, function)] or [None]
    return [None]


def _part(part: ast.expr, function: Function) -> list[str]:
    """What may stand in one place of an f-string."""
    if isinstance(part, ast.Constant):
        return [str(part.value)]
    inside = part.value if isinstance(part, ast.FormattedValue) else part
    return [HOLE if text is None else text for text in sentences(inside, function)]


def test_every_stage_has_rows_in_its_order() -> None:
    stages = [row.stage for row in rows() if row.stage != "–"]
    headings = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("## ")]
    assert [heading.split()[1] for heading in headings] == [f"{stage}:" for stage in STAGES]
    assert list(dict.fromkeys(stages)) == list(STAGES)
    assert sorted(stages, key=STAGES.index) == stages
    assert 40 <= len(rows()) <= MOST_ROWS


def test_every_row_is_whole() -> None:
    for row in rows():
        assert len(row.cells) == COLUMNS and all(row.cells), row
        works = row.stage == "–"
        assert works or row.coarse == failure_stage(row.stage), row
        assert row.cells[3] in (("0", "1", "4") if works else ("3",)), row
        assert row.sentences or works, row
        assert row.tests, row


def test_every_row_names_tests_that_are_collected(pytestconfig: pytest.Config) -> None:
    named = {test for row in rows() for test in row.tests}
    for file in {test.partition("::")[0] for test in named}:
        tree = ast.parse((TESTS / file).read_text())
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        wanted = {test.partition("::")[2] for test in named if test.startswith(f"{file}::")}
        assert wanted <= defined, f"{file} has no {sorted(wanted - defined)}"


def test_every_sentence_of_the_code_has_a_row() -> None:
    known = {(row.stage, sentence) for row in rows() for sentence in row.sentences}
    missing = set()
    for said in said_by_the_code():
        if said.sentence is None:
            assert said.place in PASSED_ON, f"{said.place} tells a sentence that is not seen here"
        elif said.sentence not in INTERNAL and not _covered(said, known):
            missing.add((said.stage, said.sentence, said.place[0]))
    assert missing == set()


def _covered(said: Said, known: set[tuple[str, str]]) -> bool:
    if said.stage:
        return (said.stage, said.sentence) in known
    return said.sentence in {sentence for _, sentence in known}


def test_no_row_tells_a_sentence_that_the_code_does_not_have() -> None:
    code = {said.sentence for said in said_by_the_code()} | _other_words()
    told = {sentence for row in rows() for sentence in row.sentences}
    assert told <= code


def _other_words() -> set[str | None]:
    """Strings of the code that are no argument of a fault: why a link was lost, how a watchdog ended."""
    found: set[str | None] = set()
    for path in [*SOURCES, REPO / "sessions" / "where.py"]:
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if isinstance(function, Function):
                for node in ast.walk(function):
                    if isinstance(node, ast.Constant | ast.JoinedStr):
                        found.update(sentences(node, function))
    return found


def test_what_is_internal_or_passed_on_is_still_so() -> None:
    code = said_by_the_code()
    assert set(INTERNAL) <= {said.sentence for said in code}
    assert set(PASSED_ON) == {said.place for said in code if said.sentence is None}
