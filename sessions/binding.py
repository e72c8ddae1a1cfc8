"""Binds each declared operation to what carries it out, and records every call."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from core.errors import ArgumentFault, Busy, ConfigFault, KerneldeckError, StorageFault, TargetFault
from core.events import Note
from core.operations.arguments import bind
from core.operations.catalogue import INIT, OPERATIONS, RESEAL, UNLOCK, operation_named
from core.operations.declaration import Answer, Operation
from core.records import OperationRecord
from core.words import JsonObject
from core.workspace.finding import find_workspace
from sessions.session import (
    Caller,
    Held,
    Session,
    Tell,
    begin_call,
    hold_workspace,
    home_expanded,
    open_reading,
    reading_of,
)
from sessions.where import Open, Where, chosen, opened, place_of, remembered

# Modules are named, not imported: `kerneldeck rank` has no use for the sweep's.
HANDLERS = {
    "inspect_context": "sessions.handlers.inspect",
    "rank_history": "sessions.handlers.rank",
    "run_objective": "sessions.handlers.run",
    "repeat_objective": "sessions.handlers.run",
    "sweep_kernel_config": "sessions.handlers.sweep",
    "resume_sweep": "sessions.handlers.sweep",
    "pause_sweep": "sessions.handlers.sweep_control",
    "continue_sweep": "sessions.handlers.sweep_control",
    "stop_sweep": "sessions.handlers.sweep_control",
    "cancel_candidate": "sessions.handlers.sweep_control",
    "move_candidate": "sessions.handlers.sweep_control",
    "retry_candidate": "sessions.handlers.sweep_control",
    "guarded_final_verify": "sessions.handlers.verify",
    "restore_best_checkpoint": "sessions.handlers.restore",
    "apply_candidate": "sessions.handlers.restore",
    "set_baseline": "sessions.handlers.annotations",
    "note_trial": "sessions.handlers.annotations",
    "update_result_json": "sessions.handlers.result",
    "init_workspace": "sessions.handlers.init",
    "reseal_workspace": "sessions.handlers.upkeep",
    "collect_garbage": "sessions.handlers.upkeep",
    "release_lock": "sessions.handlers.upkeep",
    "remote_health_check": "sessions.handlers.targets",
    "check_target": "sessions.handlers.targets",
    "clean_target": "sessions.handlers.targets",
    "add_target": "sessions.handlers.targets",
    "list_targets": "sessions.handlers.targets",
    "use_target": "sessions.handlers.targets",
    "remove_target": "sessions.handlers.targets",
}
Handler = Callable[[Any, JsonObject], Any]
Opening = AbstractContextManager[Held]
PAUSE_S = 0.1


def handler_of(operation: Operation) -> Handler:
    handler: Handler = getattr(importlib.import_module(HANDLERS[operation.id]), operation.id)
    return handler


def declared(operation_id: str) -> Operation:
    """The operation of that id; ArgumentFault names those there are."""
    operation = operation_named(operation_id)
    if operation is None:
        raise ArgumentFault(
            f"there is no operation {operation_id!r}",
            f"operations: {', '.join(one.id for one in OPERATIONS if not one.people_only)}",
        )
    return operation


async def call(
    operation: Operation, given: Mapping[str, object], start: Path, caller: Caller, tell: Tell
) -> Answer:
    """Carry an operation out on the workspace at or above `start`, as `caller`.

    Raises KerneldeckError for what cannot be done; a failed trial is in the answer, not an error.
    """
    arguments = bind(operation, given)
    if operation is INIT:
        answer: Answer = await handler_of(operation)(_folder(start, arguments["folder"]), arguments)
        return answer
    if not operation.needs_workspace:
        told: Answer = await handler_of(operation)(caller, arguments)
        return told
    find_workspace(start)
    if operation.control:
        control: Callable[..., Awaitable[Answer]] = handler_of(operation)
        return await control(start, caller, arguments)
    if not needs_hold(operation, arguments):
        with open_reading(start, remembered(place_of(""))) as reading:
            looked: Answer = handler_of(operation)(reading, arguments)
            return looked
    if operation.annotates:
        with ExitStack() as stack:
            opening = partial(hold_workspace, start, caller.command)
            return annotate(await _held(stack, opening, caller.wait_s), operation, arguments, caller, tell)
    began_s = time.time()
    try:
        where = await _where(operation, arguments, caller, opened)
    except TargetFault as fault:
        row = _refused(operation, arguments, caller, began_s, fault)
        with _telling(tell), hold_workspace(start, caller.command) as held:
            held.store.add_operation(row)
        raise
    try:
        with ExitStack() as stack:
            opening = partial(hold_workspace, start, caller.command)
            held = await _held(stack, opening, caller.wait_s)
            return await _carried_out(held, operation, arguments, caller, tell, where)
    finally:
        await where.close()


async def call_held(
    held: Held,
    operation: Operation,
    given: Mapping[str, object],
    caller: Caller,
    tell: Tell,
    open_place: Open,
) -> Answer:
    """Carry an operation out on a workspace that this process holds; `open_place` reaches its machine.

    For operations that need a workspace and change something; as `call`, one at a time.
    """
    arguments = bind(operation, given)
    began_s = time.time()
    try:
        where = await _where(operation, arguments, caller, open_place)
    except TargetFault as fault:
        with _telling(tell):
            held.store.add_operation(_refused(operation, arguments, caller, began_s, fault))
        raise
    try:
        return await _carried_out(held, operation, arguments, caller, tell, where)
    finally:
        await where.close()


def annotate(
    held: Held, operation: Operation, given: Mapping[str, object], caller: Caller, tell: Tell
) -> Answer:
    """Carry out an operation that annotates, at once: it needs nothing of what else is done meanwhile."""
    arguments = bind(operation, given)
    began_s = time.time()
    outcome, exit_code = "failed", 1
    try:
        reading = reading_of(held.place, held.store, remembered(place_of("")))
        answer: Answer = handler_of(operation)(reading, arguments)
        outcome, exit_code = "done", answer.exit_code
        return answer
    except KerneldeckError as fault:
        outcome, exit_code = fault.code, fault.exit_code
        raise
    finally:
        took_s = time.time() - began_s
        with _telling(tell):
            held.store.add_operation(
                OperationRecord(operation.id, caller.actor, arguments, began_s, took_s, outcome, exit_code)
            )


def needs_hold(operation: Operation, given: Mapping[str, object]) -> bool:
    """Whether such a call is carried out by the workspace's only holder, its host."""
    changes = operation.needs_workspace and operation.changes(given)
    return changes and operation is not UNLOCK and not operation.control


def check_arguments(operation: Operation, given: Mapping[str, object]) -> None:
    """The ArgumentFault or TargetFault of a call that could never be carried out, before anybody is asked."""
    chosen(bind(operation, given))


async def _carried_out(
    held: Held, operation: Operation, arguments: JsonObject, caller: Caller, tell: Tell, where: Where
) -> Answer:
    session = begin_call(held, caller, tell, operation is RESEAL, where)
    return await _recorded(session, operation, arguments, handler_of(operation)(session, arguments))


async def _where(operation: Operation, arguments: JsonObject, caller: Caller, open_place: Open) -> Where:
    """The machine that the call means; connected only when trials will run there.

    What is recorded of the call names it as its trials do, without a user's name.
    """
    place = chosen(arguments)
    if arguments.get("target"):
        arguments["target"] = remembered(place).name
    if operation.argument("target") is None or arguments.get("dry_run"):
        return remembered(place)
    try:
        return await open_place(place, caller.ask_host_key)
    except TargetFault:
        arguments["target"] = remembered(place).name  # no trial will say where it was to run
        raise


def _refused(
    operation: Operation, arguments: JsonObject, caller: Caller, began_s: float, fault: TargetFault
) -> OperationRecord:
    """A machine on which nothing could run leaves the call and the stage in the history; nothing else."""
    took_s = time.time() - began_s
    return OperationRecord(
        operation.id, caller.actor, arguments, began_s, took_s, fault.code, fault.exit_code
    )


@contextmanager
def _telling(tell: Tell) -> Iterator[None]:
    """A record that cannot be kept is told, and hides nothing."""
    try:
        yield
    except (StorageFault, Busy, ConfigFault) as why:
        tell(Note(f"this call could not be recorded: {why.sentence}"))


def _folder(start: Path, name: str) -> Path:
    """The folder to make a workspace of; ConfigFault when its path leads nowhere."""
    try:
        return (start / home_expanded(name)).resolve()
    except (OSError, RuntimeError) as error:
        raise ConfigFault(f"{name} is no path to a folder: {error}", "name a folder that exists") from None


async def _held(held: ExitStack, attempt: Callable[[], Opening], wait_s: float) -> Held:
    """The workspace once nobody else holds the workspace; Busy after `wait_s`. An interrupt ends the wait."""
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            return held.enter_context(attempt())
        except Busy:
            left_s = deadline_s - time.monotonic()
            if not left_s > 0:
                raise
            await asyncio.sleep(min(PAUSE_S, left_s))


async def _recorded(
    session: Session, operation: Operation, arguments: JsonObject, work: Awaitable[Answer]
) -> Answer:
    """Whatever comes of the work, its call is a row and nothing of it still runs."""
    began_s = time.time()
    outcome, exit_code = "failed", 1
    try:
        answer = await work
        outcome, exit_code = "done", answer.exit_code
        return answer
    except KerneldeckError as error:
        outcome, exit_code = error.code, error.exit_code
        raise
    except asyncio.CancelledError:
        outcome, exit_code = "cancelled", 130
        raise
    finally:
        await session.engine.target.close()
        row = OperationRecord(
            operation.id, session.engine.actor, arguments, began_s, time.time() - began_s, outcome, exit_code
        )
        with _telling(session.engine.tell):
            session.store.add_operation(row)
