"""Which answer is printed how."""

from __future__ import annotations

from collections.abc import Callable

from core.operations.declaration import Answer, Operation
from core.words import JsonObject
from kerneldeck import render_dry_run as dry_run
from kerneldeck import render_targets as targets
from kerneldeck import render_trials as trials
from kerneldeck import render_workspace as workspace


def render(operation: Operation, answer: Answer) -> None:
    """Print the answer on stdout."""
    content = answer.content
    dry = _DRY_RUNS.get(operation.id) if content.get("dry_run") is True else None
    (dry or _RENDERERS[operation.id])(content)


def render_detached(answer: Answer) -> None:
    """Work that was handed over: how it is called, and how to see it."""
    content = answer.content
    print(f"#{content['receipt']} {content['state']}: {content['command']}")
    print("  watch it: kerneldeck attach   what happens, line by line: kerneldeck watch --plain")


# The others tell what they would do in the same words as what they did.
_DRY_RUNS: dict[str, Callable[[JsonObject], None]] = {
    "guarded_final_verify": dry_run.dry_verify,
    "restore_best_checkpoint": dry_run.dry_restore,
    "repeat_objective": dry_run.dry_repeat,
    "sweep_kernel_config": dry_run.dry_sweep,
    "apply_candidate": dry_run.dry_apply,
    "remote_health_check": targets.dry_health,
    "check_target": targets.dry_health,
    "clean_target": targets.dry_clean,
}
_RENDERERS: dict[str, Callable[[JsonObject], None]] = {
    "inspect_context": workspace.render_inspect,
    "run_objective": trials.render_run,
    "repeat_objective": trials.render_repeat,
    "sweep_kernel_config": trials.render_sweep,
    "resume_sweep": trials.render_sweep,
    "set_baseline": trials.render_said,
    "note_trial": trials.render_said,
    "pause_sweep": trials.render_said,
    "continue_sweep": trials.render_said,
    "stop_sweep": trials.render_said,
    "cancel_candidate": trials.render_said,
    "move_candidate": trials.render_said,
    "retry_candidate": trials.render_said,
    "guarded_final_verify": trials.render_verify,
    "restore_best_checkpoint": trials.render_restore,
    "rank_history": trials.render_rank,
    "apply_candidate": trials.render_apply,
    "update_result_json": trials.render_result,
    "init_workspace": workspace.render_init,
    "reseal_workspace": workspace.render_reseal,
    "collect_garbage": workspace.render_gc,
    "release_lock": workspace.render_unlock,
    "remote_health_check": targets.render_health,
    "check_target": targets.render_health,
    "clean_target": targets.render_clean,
    "add_target": targets.render_targets,
    "list_targets": targets.render_targets,
    "use_target": targets.render_targets,
    "remove_target": targets.render_targets,
}
