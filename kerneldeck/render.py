"""Which answer is printed how."""

from __future__ import annotations

from collections.abc import Callable

from core.operations.declaration import Answer, Operation
from core.words import JsonObject
from kerneldeck import render_trials as trials
from kerneldeck import render_workspace as workspace
from kerneldeck.text import fields


def render(operation: Operation, answer: Answer) -> None:
    """Print the answer on stdout."""
    content = answer.content
    if content.get("dry_run") is True and operation.id not in _OWN_DRY_RUN:
        return fields("dry run: nothing was changed", {k: v for k, v in content.items() if k != "dry_run"})
    return _RENDERERS[operation.id](content)


_OWN_DRY_RUN = {"apply_candidate", "init_workspace", "reseal_workspace", "collect_garbage"}
_RENDERERS: dict[str, Callable[[JsonObject], None]] = {
    "inspect_context": workspace.render_inspect,
    "run_objective": trials.render_run,
    "repeat_objective": trials.render_repeat,
    "sweep_kernel_config": trials.render_sweep,
    "guarded_final_verify": trials.render_verify,
    "restore_best_checkpoint": trials.render_restore,
    "rank_history": trials.render_rank,
    "apply_candidate": trials.render_apply,
    "update_result_json": trials.render_result,
    "init_workspace": workspace.render_init,
    "reseal_workspace": workspace.render_reseal,
    "collect_garbage": workspace.render_gc,
    "release_lock": workspace.render_unlock,
}
