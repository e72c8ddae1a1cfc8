"""The app against its budgets: `make bench-tui` prints each figure beside its budget, reached or not.

A store of 100,000 trials, a sweep of 10,000 waiting candidates, events at a steady rate, the app on a
pseudo-terminal whose bytes are counted. Idle and first paint use a real host, the rest a stand-in for the
connection (tui_child.py) that tells as many events as are asked for.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from machine import facts

from core.events import CandidateScreened, TrialBegan, TrialEnded
from core.records import TrialRecord
from core.words import Status
from sessions.history import Order, View
from sessions.host.events import Event, Gpu, Numbered, TargetSeen, TargetView, Work, WorkspaceSeen
from sessions.host.snapshot import Snapshot, SweepView
from tests.terminal.pty_app import PtyApp
from tests.tui.seeding import CONTRACT, History, opened, seed_many
from tui.history.window import load

REPO = Path(__file__).resolve().parents[2]
CHILD = (sys.executable, str(Path(__file__).with_name("tui_child.py")))
APP = (sys.executable, "-m", "kerneldeck", "tui")
TRIALS, WAITING = 100_000, 10_000
RATE, KEYS = 50.0, 100
IDLE_S, SWEEP_S, BURST_S, BURST_RATE = 60.0, 15.0, 10.0, 1000.0
HEAVY = ("textual", "asyncssh", "scipy", "sklearn")
NOW_S = 1_780_000_000.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value beside its budget; `measured` has to be at most `budget`."""

    what: str
    measured: float
    budget: float
    unit: str
    note: str = ""

    def __str__(self) -> str:
        reached = "reached" if self.measured <= self.budget else "not reached"
        note = f"  {self.note}" if self.note else ""
        return f"{self.what:<52}{self.measured:>10,.1f}{self.budget:>9,.0f} {self.unit:<10}{reached}{note}"


# What is told


def snapshot_of(names: list[str], root: Path) -> Snapshot:
    """A sweep with its candidates waiting."""
    workspace = WorkspaceSeen("cpu_rmsnorm", str(root), CONTRACT, "best_us", "us", True)
    sweep = SweepView(1, len(names) + 1, "cli", True, waiting=tuple(names), counts={"ok": 1}, began_s=NOW_S)
    work = Work(1, "sweep_kernel_config", "cli", "kerneldeck sweep config", 1, 1, False, NOW_S, NOW_S)
    return Snapshot(1, os.getpid(), "bench", NOW_S, workspace, TargetView(), work, sweep=sweep)


def events_of(names: list[str]) -> Iterator[Event]:
    """Three events a candidate, for ever."""
    for number, name in enumerate(itertools.cycle(names), TRIALS + 1):
        began = TrialRecord(
            name, CONTRACT, "dev", "screen", "local", "cli", started_s=NOW_S, sweep_id=1, id=number
        )
        yield TrialBegan(began)
        yield TrialEnded(began.ended(Status.OK, score=800.0 + number % 97, duration_s=0.06))
        yield CandidateScreened(1, name, Status.OK, 800.0 + number % 97)


class Teller:
    """Tells the app events over a FIFO at a rate that can be changed, and stores the trials they tell of."""

    def __init__(self, history: History, folder: Path, first: Snapshot, events: Iterator[Event]) -> None:
        self.fifo = folder / "events"
        self.told = 0
        self.rate = 0.0
        self.storing = True
        self._history, self._first, self._events = history, first, events
        self._stop = threading.Event()
        os.mkfifo(self.fifo)
        # Opened for both, so that neither side waits for the other.
        self._pipe = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._tell_all)

    def __enter__(self) -> Teller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._pipe)

    def one(self, event: Event) -> None:
        self.told += 1
        self._write(Numbered(self.told + 1, "cli", NOW_S + self.told * 0.02, event).to_json())

    def _tell_all(self) -> None:
        self._write(self._first.to_json())
        due = time.monotonic()
        while not self._stop.is_set():
            if not self.rate:
                due = time.monotonic()
                self._stop.wait(0.01)
                continue
            due += 1 / self.rate
            if (wait_s := due - time.monotonic()) > 0:
                self._stop.wait(wait_s)
            event = next(self._events)
            if self.storing and isinstance(event, TrialEnded):
                self._store(event.trial)
            self.one(event)

    def _store(self, trial: TrialRecord) -> None:
        started = replace(trial, id=0, status=None, score=None, sweep_id=None)
        stored = self._history.store.begin_trial(started)
        self._history.store.end_trial(stored.ended(Status.OK, score=trial.score, duration_s=0.06), None)

    def _write(self, message: object) -> None:
        """Write it whole, as fast as the app reads; an app that is gone holds nobody up."""
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest and not self._stop.is_set():
            _, ready, _ = select.select([], [self._pipe], [], 0.1)
            if ready:
                rest = rest[os.write(self._pipe, rest[: select.PIPE_BUF]) :]


# What is measured


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "SSH_"))}
    for name in ("COLORTERM", "NO_COLOR", "LC_ALL"):
        kept.pop(name, None)
    return kept | {"TERM": "tmux-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(REPO)} | changes


def has(text: str) -> Callable[[bytes], bool]:
    return lambda written: text.encode() in written


def settle(app: PtyApp) -> None:
    """Until nothing comes for a second, or ten are over."""
    for _ in range(10):
        if app.read_for(1.0) == 0:
            return


def descendants(pid: int) -> list[int]:
    """The process and all below it."""
    found = [pid]
    for one in found:
        try:
            found += [int(child) for child in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
        except OSError:
            continue
    return found


def cpu_s(pid: int) -> float:
    """Seconds of processor that the app has used, its children's included."""
    ticks = 0
    for one in descendants(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in descendants(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def help_time(folder: Path) -> Iterator[Figure]:
    times = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([*APP[:3], "--help"], cwd=folder, env=environment(), check=True, capture_output=True)
        times.append((time.perf_counter() - began) * 1000)
    yield Figure("kerneldeck --help", statistics.median(times), 150, "ms")
    probe = subprocess.run(
        [sys.executable, "-X", "importtime", *APP[1:3], "--help"],
        cwd=folder, env=environment(), check=True, capture_output=True, text=True,
    )  # fmt: skip
    names = {line.rpartition("|")[2].strip() for line in probe.stderr.splitlines()}
    loaded = sorted(names & {*HEAVY})
    yield Figure("  of textual, asyncssh, scipy, sklearn it loads", len(loaded), 0, "", ", ".join(loaded))


def reading(history: History) -> Iterator[Figure]:
    """Views of the whole history, read as the table reads them."""
    views = {
        "open history at 100,000 rows": (View(), 150.0),
        "filter by a knob": (View("BLOCK_M=128"), 300.0),
        "filter by a word in any column": (View("shared"), 300.0),
        "sort by score": (View(order=Order.SCORE), 300.0),
        "sort by change against the best": (View(order=Order.CHANGE), 300.0),
        "hide bad ones": (View(hide_bad=True), 300.0),
    }
    for what, (view, budget) in views.items():
        times = []
        for _ in range(5):
            began = time.perf_counter()
            ids = load(history.reader, view).ids
            history.reader.rows(ids[:64])
            times.append((time.perf_counter() - began) * 1000)
        yield Figure(what, statistics.median(times), budget, "ms", f"slowest {max(times):.0f}")


def first_paint(root: Path, surroundings: dict[str, str]) -> Iterator[Figure]:
    """From the shell's exec to the first lines, the host being there already."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        with PtyApp(APP, surroundings, str(root)) as app:
            app.read_until(has("Context"), 60.0)
            times.append((time.perf_counter() - began) * 1000)
            app.read_until(has("runs"), 60.0)
            app.press("q")
            app.wait()
    yield Figure("first paint", statistics.median(times), 600, "ms", f"slowest {max(times):.0f}")


def idle_local(root: Path, surroundings: dict[str, str]) -> Iterator[Figure]:
    with PtyApp(APP, surroundings, str(root)) as app:
        app.read_until(has("runs"), 60.0)
        app.press("4")
        settle(app)
        before_s = cpu_s(app.pid)
        sent = app.read_for(IDLE_S)
        used = 100 * (cpu_s(app.pid) - before_s) / IDLE_S
        app.press("q")
        app.wait()
    yield Figure("idle, a local target", sent, 0, "bytes/min")
    yield Figure("idle, processor", used, 0.5, "% of core")


@contextmanager
def told_app(
    history: History, names: list[str], folder: Path, **changes: str
) -> Iterator[tuple[PtyApp, Teller]]:
    """The app with its stand-in for a host, its history open."""
    folder.mkdir()
    root = history.place.workspace
    with Teller(history, folder, snapshot_of(names, root), events_of(names)) as teller:
        words = (*CHILD, str(root), str(teller.fifo))
        with PtyApp(words, environment(**changes), str(root)) as app:
            app.read_until(has("runs"), 60.0)
            settle(app)
            yield app, teller
            app.press("q")
            app.wait()


def idle_connected(history: History, folder: Path) -> Iterator[Figure]:
    """A minute with a connected target: two samples that differ by less than what is shown."""
    root = history.place.workspace
    quiet = replace(snapshot_of([], root), work=None, sweep=None)
    folder.mkdir()
    teller = Teller(history, folder, quiet, iter(()))
    words = (*CHILD, str(root), str(teller.fifo))
    with teller, PtyApp(words, environment(), str(root)) as app:
        app.read_until(has("runs"), 60.0)
        teller.one(_sample(0))
        settle(app)
        sent = 0
        for number in (1, 2):
            teller.one(_sample(number))
            sent += app.read_for(IDLE_S / 2)
        app.press("q")
        app.wait()
    yield Figure("idle, a connected target", sent, 200, "bytes/min")


def _sample(number: int) -> TargetSeen:
    gpu = Gpu(0, "H200", "u", 61 + number % 2, 487 + number, 700, 1755, 12_000, 141_000)
    return TargetSeen(TargetView("h200", "H200", "connected", 42.0 + number, (gpu,), time.time()))


def key_times(app: PtyApp) -> list[float]:
    """From a key to the line of the row that it leads to, ms."""
    times = []
    for _ in range(KEYS):
        wanted = re.compile(rb">[ *] *#%d " % (_cursor_row(app) - 1))
        start = len(app.written)
        began = time.perf_counter()
        app.press("j")
        app.read_until(
            lambda written, wanted=wanted, start=start: wanted.search(written, start) is not None, 10.0
        )
        times.append((time.perf_counter() - began) * 1000)
        app.read_for(0.03 + 0.05 * (len(times) % 3))
    return times


def _cursor_row(app: PtyApp) -> int:
    """The trial that was last painted under the cursor."""
    rows = re.findall(rb">[ *] *#(\d+) ", bytes(app.written[-20_000:]))
    assert rows, "no row has the cursor"
    return int(rows[-1])


def keys_under_load(history: History, names: list[str], folder: Path) -> Iterator[Figure]:
    with told_app(history, names, folder) as (app, teller):
        app.press("4")
        app.read_until(lambda written: re.search(rb">[ *] *#\d+ ", written) is not None)
        teller.rate = RATE
        app.read_for(2.0)
        start = len(app.written)
        app.press("j")  # from now on nothing follows the newest
        app.read_until(lambda written: re.search(rb">[ *] *#\d+ ", written[start:]) is not None)
        times = sorted(key_times(app))
        teller.rate = 0.0
    p95 = times[int(0.95 * len(times))]
    note = f"median {statistics.median(times):.0f}, slowest {times[-1]:.0f}"
    yield Figure("key to repaint, 100,000 rows and 50 events/s, p95", p95, 50, "ms", note)


def sweep_bytes(history: History, names: list[str], folder: Path) -> Iterator[Figure]:
    """A trial a second, which moves every row of both lists; and as many events as keys are tried under."""
    with told_app(history, names, folder, SSH_CONNECTION="10.0.0.1 1 10.0.0.2 22") as (app, teller):
        for pane, key in (("queue", "3"), ("history", "4")):
            app.press(key)
            app.read_for(1.0)
            for pace, rate in (("a trial a second", 3.0), ("50 events/s", RATE)):
                teller.rate = rate
                app.read_for(1.0)
                sent = app.read_for(SWEEP_S) / SWEEP_S
                teller.rate = 0.0
                app.read_for(1.0)
                yield Figure(f"sweep at 80x24 over SSH, {pane}, {pace}", sent / 1000, 4, "kB/s")


def burst(history: History, names: list[str], folder: Path) -> Iterator[Figure]:
    """A thousand events a second for ten seconds, then what the screen says against what was told."""
    with told_app(history, names, folder) as (app, teller):
        app.press("3")
        teller.storing = False  # no disk commits a thousand times a second
        teller.rate = BURST_RATE
        app.read_for(1.0)
        before_mb, told = memory_mb(app.pid), teller.told
        app.read_for(BURST_S)
        teller.rate = 0.0
        rate = (teller.told - told) / BURST_S
        after_mb = memory_mb(app.pid)
        time.sleep(2 / BURST_RATE)  # the one event that was already due
        began = time.perf_counter()
        ended = 1 + teller.told // 3
        app.read_until(lambda written: re.search(rb"%s ok" % f"{ended:,}".encode(), written) is not None
                       or re.search(rb"%d ok" % ended, written) is not None, 20.0)  # fmt: skip
        lag_ms = (time.perf_counter() - began) * 1000
    note = f"at {rate:,.0f} events/s"
    yield Figure("burst of 1,000 events/s for 10 s: right after", lag_ms, 1000, "ms", note)
    yield Figure("  its memory grows by", after_mb - before_mb, 10, "MB", f"{after_mb:.0f} MB in all")


def end_host(root: Path, surroundings: dict[str, str]) -> None:
    subprocess.run([*APP[:3], "host", "stop"], cwd=root, env=surroundings, capture_output=True)


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"the app against its budgets: {facts('textual')}")
    print(f"{'':<52}{'measured':>10}{'budget':>9}")
    with tempfile.TemporaryDirectory(prefix="kd-bench-") as scratch:
        folder = Path(scratch)
        root = folder / "w"
        shutil.copytree(REPO / "kernels" / "cpu_rmsnorm", root)
        shutil.copy(REPO / "kernels" / "kerneldeck_timing.py", root)
        history = opened(root)
        seed_many(history, TRIALS)
        first = history.store.trial(1)
        assert first is not None
        history.best(first)
        names = [f"{number:064x}" for number in range(WAITING)]
        surroundings = environment(XDG_RUNTIME_DIR=str(folder), KERNELDECK_HOST_IDLE_S="60")
        told: list[Callable[[], Iterator[Figure]]] = [
            lambda: help_time(folder),
            lambda: reading(history),
            lambda: keys_under_load(history, names, folder / "keys"),
            lambda: sweep_bytes(history, names, folder / "bytes"),
            lambda: burst(history, names, folder / "burst"),
            lambda: idle_connected(history, folder / "idle"),
        ]
        for measure in told:
            show(measure)
        history.store.close()
        history.reader.store.close()
        try:
            show(lambda: first_paint(root, surroundings))
            show(lambda: idle_local(root, surroundings))
        finally:
            end_host(root, surroundings)


def show(measure: Callable[[], Iterator[Figure]]) -> None:
    """Print the figures as they come; a measurement that fails says so and the others go on."""
    try:
        for figure in measure():
            print(figure, flush=True)
    except AssertionError as error:
        print(f"not measured: {error}", flush=True)


if __name__ == "__main__":
    main()
