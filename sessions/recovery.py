"""Putting right what a killed command left behind; run by every writing command before its work."""

from __future__ import annotations

from core.targets.remove_tree import remove_tree
from core.workspace.config import CONFIG_NAME
from sessions.faults import shown, storing
from sessions.journal import JournaledFiles
from sessions.state_dir import StatePlace, create
from sessions.store import SessionStore
from sessions.trials import INTERRUPTED


def recover(store: SessionStore, files: JournaledFiles) -> list[str]:
    """Finish interrupted writes, end interrupted trials and sweeps, remove leftovers; what was done.

    A detached sweep stays on record as running: `sweep resume` goes on with it.

    Needs the workspace held. Running it again, or after it was itself cut off, does no harm.
    StorageFault when the disk refuses; the rest is then done next time.
    """
    _complete_folder(store.place)
    return [
        *_finish_writes(store, files),
        *_end_trials(store),
        *_stop_sweeps(store),
        *_remove_leftovers(store),
    ]


def _complete_folder(place: StatePlace) -> None:
    """Make files of the state folder anew that were made, and cut off before they were filled."""
    made = [path for name in (".gitignore", "workspace") if (path := place.folder / name).is_file()]
    empty = [path for path in made if path.stat().st_size == 0]
    for path in empty:
        with storing("complete the state folder", path):
            path.unlink()
    if empty:
        create(place)


def _finish_writes(store: SessionStore, files: JournaledFiles) -> list[str]:
    rows = store.unfinished_writes()
    # Result files lie beside the toml by default, and are written by way of such a file too.
    names = {CONFIG_NAME, *files.mutable, *(name for row in rows for name in (*row.old, *row.new))}
    files.files.remove_stale_temps(names)
    # An open row with a later one behind it could only not be closed: the later began from its outcome.
    for row in rows[:-1]:
        store.end_write(row.id, "done", "closed after a later write")
    said: list[str] = []
    for row in rows[-1:]:
        said += files.finish(row) or [f"an interrupted write ({row.reason}) had reached every file"]
    return said


def _end_trials(store: SessionStore) -> list[str]:
    count = store.cancel_running_trials()
    if count == 0:
        return []
    return ["1 interrupted trial is cancelled" if count == 1 else f"{count} interrupted trials are cancelled"]


def _stop_sweeps(store: SessionStore) -> list[str]:
    running = [sweep for sweep in store.running_sweeps() if not sweep.detached]
    for sweep in running:
        store.stop_sweep(sweep, INTERRUPTED)
    return [f"sweep {sweep.id} was interrupted and is stopped" for sweep in running]


def _remove_leftovers(store: SessionStore) -> list[str]:
    store.blobs.remove_unfinished()
    said: list[str] = []
    place = store.place
    left = [*place.staging.glob("*"), *place.scratch.glob("*"), *place.linked.glob("*.tmp")]
    for entry in sorted(left):
        try:
            remove_tree(entry)
            said.append(f"removed {shown(entry)}, left by an interrupted trial")
        except OSError as error:
            # What is in the way of nothing must not stop the command.
            said.append(f"could not remove {shown(entry)}: {error.strerror}; remove it by hand")
    return said
