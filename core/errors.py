"""What can go wrong, as one tree.

    KerneldeckError
    ├── UsageFault            exit 2   the call or a file of the user is wrong
    │   ├── ArgumentFault              an argument of an operation
    │   ├── ConfigFault                kerneldeck.toml, or what it names
    │   ├── SealFault                  protected files differ from the seal
    │   ├── ChangedMeanwhile           a file changed under an operation
    │   └── SchemaFault                state written by a newer version
    ├── WorkFault             exit 1   the work itself failed
    │   └── StorageFault               the state of record cannot be written or read
    ├── Busy                  exit 3   another command holds the workspace
    ├── TargetFault           exit 3   the target cannot run trials now (carries a stage)
    └── Cancelled             exit 130 a person stopped it

A failed trial is a row in the history, not one of these: exceptions are for operations that cannot be
done. Every error has a stable `code`, one `sentence` (what, where) and a `hint` (what to do).
"""

from __future__ import annotations


class KerneldeckError(Exception):
    """An operation that cannot be done, told as a sentence with a hint, a code and an exit code."""

    code = "error"
    exit_code = 1

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.sentence}\n  {self.hint}" if self.hint else self.sentence


class UsageFault(KerneldeckError):
    code = "usage"
    exit_code = 2


class ArgumentFault(UsageFault):
    code = "usage.argument"


class ConfigFault(UsageFault):
    code = "workspace.config"


class SealFault(UsageFault):
    code = "workspace.seal"


class ChangedMeanwhile(UsageFault):
    code = "workspace.changed"


class SchemaFault(UsageFault):
    code = "session.schema"


class WorkFault(KerneldeckError):
    code = "work"
    exit_code = 1


class StorageFault(WorkFault):
    code = "session.storage"


class Busy(KerneldeckError):
    code = "session.busy"
    exit_code = 3


class TargetFault(KerneldeckError):
    """The target cannot run trials now; `stage` is one of `core.words.STAGES`."""

    code = "target"
    exit_code = 3

    def __init__(self, stage: str, sentence: str, hint: str = "") -> None:
        super().__init__(sentence, hint)
        self.stage = stage
        self.code = f"target.{stage}"


class Cancelled(KerneldeckError):
    code = "cancelled"
    exit_code = 130
