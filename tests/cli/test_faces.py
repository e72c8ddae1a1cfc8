"""The catalogue and its faces: verbs, `call`, help, completion; the same answer from each."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.operations.catalogue import OPERATIONS
from core.operations.declaration import Operation
from kerneldeck.render import _DRY_RUNS, _RENDERERS
from sessions.binding import HANDLERS, handler_of
from tests.cli.deck import Deck, configured, environment, kerneldeck

# The arguments of one call of every operation, as words of its verb and as its JSON object.
CALLS: dict[str, tuple[list[str], dict[str, object]]] = {
    "inspect_context": ([], {}),
    "run_objective": (["--mode", "final", "--verifier"], {"mode": "final", "verifier": True}),
    "repeat_objective": (["--runs", "2", "--mode", "dev"], {"runs": 2, "mode": "dev"}),
    "sweep_kernel_config": (
        ["--set", "block=4,8", "--seed", "3", "--finalists", "1"],
        {"knobs": {"block": [4, 8]}, "seed": 3, "finalists": 1},
    ),
    "resume_sweep": (["1"], {"sweep": 1}),
    "guarded_final_verify": (["--seed", "3", "--max-score", "500"], {"seed": 3, "max_score": 500}),
    "restore_best_checkpoint": (["--files", "config.json"], {"files": ["config.json"]}),
    "rank_history": (["--top-n", "5"], {"top_n": 5}),
    "apply_candidate": (["--config", '{"block": 4}'], {"config": {"block": 4}}),
    "set_baseline": (["1"], {"record": "1"}),
    "note_trial": (
        ["1", "as it came", "--tag", "start"],
        {"trial": 1, "text": "as it came", "tags": ["start"]},
    ),
    "update_result_json": (["out.json", "--summary", "done"], {"result_path": "out.json", "summary": "done"}),
    "init_workspace": (["other", "--dry-run"], {"folder": "other", "dry_run": True}),
    "reseal_workspace": (["--dry-run"], {"dry_run": True}),
    "collect_garbage": (["--samples-mb", "0"], {"samples_mb": 0}),
    "release_lock": ([], {}),
    "remote_health_check": (["--dry-run", "--host", "gpu1"], {"dry_run": True, "host": "gpu1"}),
    "check_target": (["ssh:gpu1", "--dry-run"], {"name": "ssh:gpu1", "dry_run": True}),
    "add_target": (["other", "gpu1", "--gpu", "1"], {"name": "other", "host": "gpu1", "gpu": "1"}),
    "list_targets": ([], {}),
    "use_target": (["local"], {"name": "local"}),
    "remove_target": (["gpu"], {"name": "gpu"}),
    "clean_target": (["gpu", "--dry-run"], {"target": "gpu", "dry_run": True}),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a best and an edit since, beside a folder that is none yet."""
    deck = configured(tmp_path_factory.mktemp("template") / "knobs")
    deck.run("sweep", "config", "--set", "block=1")
    deck.config(block=2, warps=1)
    deck.write("other/benchmark.py", 'import json\nprint(json.dumps({"status": "passed", "total_ms": 5}))\n')
    deck.write("other/config.json", '{"block": 1}')
    deck.write("config/kerneldeck/targets.toml", '[targets.gpu]\nhost = "gpu1"\n')
    return deck.root


def _targets_of(root: Path) -> dict[str, str | None]:
    """The user's described targets are those that lie in the workspace's folder."""
    return {"XDG_CONFIG_HOME": str(root / "config")}


# Words to a running sweep have tests of their own, in tests/host.
STEADY = [operation for operation in OPERATIONS if not operation.control]
CALLABLE = [operation for operation in STEADY if not operation.people_only]


def scrubbed(value: Any) -> Any:
    """Without what two runs may not share: times, and texts with times in them."""
    if isinstance(value, dict):
        return {
            name: scrubbed(item)
            for name, item in value.items()
            if not re.search(r"_s$|seconds|story|before_bytes|freed_bytes|protected_bytes", name)
        }
    return [scrubbed(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("operation", CALLABLE, ids=lambda operation: operation.id)
def test_json_of_a_verb_is_what_call_prints(template: Path, tmp_path: Path, operation: Operation) -> None:
    words, arguments = CALLS[operation.id]
    answers = []
    for command in ([*operation.verb, *words, "--json"], ["call", operation.id, json.dumps(arguments)]):
        root = tmp_path / "knobs"
        shutil.copytree(template, root)
        done = kerneldeck(*command, cwd=root, env=_targets_of(root))
        answers.append((done.code, scrubbed(done.answer)))
        shutil.rmtree(root)
    assert answers[0] == answers[1]
    code, answer = answers[0]
    assert answer["operation"] == operation.id and answer["exit_code"] == code
    assert code == 0, answer


@pytest.mark.parametrize("operation", STEADY, ids=lambda operation: operation.id)
def test_each_operation_is_shown_to_people_too(template: Path, tmp_path: Path, operation: Operation) -> None:
    root = Path(shutil.copytree(template, tmp_path / "knobs"))
    done = kerneldeck(*operation.verb, *CALLS[operation.id][0], cwd=root, env=_targets_of(root))
    assert done.out.strip() and not done.out.startswith("{")
    longest = max(done.out.splitlines(), key=len)
    assert len(longest) <= 160 or "/" in longest, longest


def test_what_is_for_people_only_is_refused_to_calls(template: Path) -> None:
    assert {one.id for one in STEADY} - {one.id for one in CALLABLE} == {
        "init_workspace", "reseal_workspace", "release_lock",
        "add_target", "use_target", "remove_target", "check_target",
        "clean_target",
    }  # fmt: skip
    done = kerneldeck("call", "reseal_workspace", cwd=template)
    assert done.code == 2 and done.answer["error"]["hint"] == "on a terminal: kerneldeck reseal"
    asked = json.dumps(CALLS["reseal_workspace"][1])
    assert kerneldeck("call", "reseal_workspace", asked, cwd=template).code == 2


def test_nothing_is_missing_from_any_face() -> None:
    ids = [operation.id for operation in OPERATIONS]
    assert set(CALLS) == {operation.id for operation in STEADY}
    assert set(HANDLERS) == set(_RENDERERS) == set(ids)
    assert set(_DRY_RUNS) <= set(ids)
    assert all(callable(handler_of(operation)) for operation in OPERATIONS)
    help_text = " ".join(kerneldeck("call", "--help", cwd=Path("/")).out.split())
    callable_ids = [operation.id for operation in OPERATIONS if not operation.people_only]
    assert f"Operations: {', '.join(callable_ids)}." in help_text
    commands = kerneldeck("--help", cwd=Path("/")).out
    for operation in OPERATIONS:
        assert re.search(rf"^  {operation.verb[0]}  ", commands, re.MULTILINE), operation.verb


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_help_of_a_verb_names_every_argument(operation: Operation, tmp_path: Path) -> None:
    text = kerneldeck(*operation.verb, "--help", cwd=tmp_path, env={"COLUMNS": "80"}).out
    assert f"Operation {operation.id}." in text and all(len(line) <= 80 for line in text.splitlines())
    for argument in operation.arguments:
        option = argument.flag or f"--{argument.name.replace('_', '-')}"
        assert (argument.name.upper() if argument.positional else option) in text
    assert "--json" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_each_shell_is_printed(shell: str, tmp_path: Path) -> None:
    script = kerneldeck("completion", shell, cwd=tmp_path).out
    assert "_KERNELDECK_COMPLETE" in script and "kerneldeck" in script


COMPLETE = """
PATH=$4:$PATH
source "$1"
compopt() { :; }
COMP_WORDS=($2)
COMP_CWORD=$3
_kerneldeck_completion kerneldeck
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("kerneldeck re", {"repeat", "reseal", "restore", "result"}),
        ("kerneldeck sweep co", {"config", "continue"}),
        ("kerneldeck verify --max", {"--max-score"}),
        ("kerneldeck run --remote a", {"auto"}),
    ],
)
def test_bash_completes_verbs_options_and_choices(deck: Deck, line: str, wanted: set[str]) -> None:
    script = deck.write("completion.bash", deck.run("completion", "bash").out)
    program = deck.write("bin/kerneldeck", f'#!/bin/sh\nexec {sys.executable} -m kerneldeck "$@"\n')
    words = [COMPLETE, "bash", str(script), line, str(len(line.split()) - 1), str(program.parent)]
    done = subprocess.run(["bash", "-c", *words], capture_output=True, text=True, env=environment())
    assert set(done.stdout.split()) == wanted, done.stderr
