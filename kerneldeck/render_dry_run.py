"""What an operation would do, as a person reads it."""

from __future__ import annotations

from core.words import JsonObject
from kerneldeck.text import SHORT_ID, config_text, line

SHOWN_CONFIGS = 20


def dry_verify(content: JsonObject) -> None:
    best = content["best"]
    line(f"dry run: {content['candidate'][:SHORT_ID]} would be verified in mode {content['would_verify']}")
    if best is None:
        line("  no best stands yet: it would be the first, if it passes")
    elif content["would_compare_with_best"]:
        line(f"  the gate would compare it with the best, {best[:SHORT_ID]}")
        restored = "be restored" if content["would_restore_on_regression"] else "not be restored"
        line(f"  if it regressed, the best would {restored}")
    else:
        line("  it is the best itself")


def dry_restore(content: JsonObject) -> None:
    what = f"checkpoint {content['checkpoint'][:SHORT_ID]}"
    if content["files"]:
        line(f"dry run: would restore {', '.join(content['files'])} from {what}")
    else:
        line(f"dry run: nothing to do, the workspace holds {what} already")


def dry_repeat(content: JsonObject) -> None:
    what = "verifier" if content["verifier"] else "benchmark"
    line(f"dry run: would run the {what} {content['would_run']} times in mode {content['mode']}")


def dry_sweep(content: JsonObject) -> None:
    line(f"dry run: would run {content['how']}, in mode {content['mode']}")
    configs = content["configs"]
    for config in configs[:SHOWN_CONFIGS]:
        line(f"  {config_text(config)}")
    if len(configs) > SHOWN_CONFIGS:
        line(f"  and {len(configs) - SHOWN_CONFIGS:,} more (--json prints all)")


def dry_apply(content: JsonObject) -> None:
    candidate = content["candidate"][:SHORT_ID]
    files = ", ".join(content["files"])
    does = f"write {files}" if files else "write nothing: the workspace holds it already"
    line(f"dry run: would verify candidate {candidate}, ask the gate about it, and {does}")
    line("  to do it: the same with --no-dry-run")
