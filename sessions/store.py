"""The state of record of one workspace, opened."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from sessions.annotations import AnnotationRows
from sessions.blobs import BlobFolder
from sessions.checkpoints import CheckpointRows
from sessions.contracts import ContractRows
from sessions.database import Database, open_for_reading, open_for_writing
from sessions.decisions import DecisionRows
from sessions.progress import ProgressRows
from sessions.rows import Clock
from sessions.state_dir import StatePlace, create, refuse_foreign
from sessions.sweeps import SweepRows
from sessions.trials import TrialRows


class SessionStore(
    TrialRows, ContractRows, CheckpointRows, DecisionRows, SweepRows, ProgressRows, AnnotationRows
):
    """Everything that is kept of a workspace; a `core.store.Store`, and what reads it.

    Every write is one transaction, on disk when the call returns; a full, read-only or failing disk is a
    StorageFault and leaves nothing half written. Contents are blobs before rows name them.
    """

    def __init__(self, place: StatePlace, database: Database, clock: Clock = time.time) -> None:
        CheckpointRows.__init__(self, database, BlobFolder(place.blobs), clock)
        self.place = place

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> SessionStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


if TYPE_CHECKING:
    from core.store import Store

    def _is_a_store(store: SessionStore) -> Store:
        return store


def open_write(place: StatePlace, clock: Clock = time.time) -> SessionStore:
    """Open the state for writing, made where it is absent. The caller holds the workspace (`lock.hold`)."""
    create(place)
    return SessionStore(place, open_for_writing(place.database, place.network), clock)


def open_read(place: StatePlace, clock: Clock = time.time) -> SessionStore | None:
    """Open the state for reading only; None when there is none yet, and none is made then.

    Needs no lock and works while another process writes.
    """
    refuse_foreign(place)
    database = open_for_reading(place.database)
    return None if database is None else SessionStore(place, database, clock)
