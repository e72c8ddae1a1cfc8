"""The app against its budgets: `make bench-tui` prints each figure beside its budget, reached or not.

Words after the script's name choose: help, history, keys, bytes, burst, idle, first-paint; all of them is
five minutes. A figure in ms tells the processor time too, which other work on the machine hardly moves.

A store of 100,000 trials, a sweep of 10,000 waiting candidates, events at a steady rate, the app on a
pseudo-terminal whose bytes are counted. Idle and first paint use a real host, the rest a stand-in for the
connection (tui_child.py) that tells as many events as are asked for.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from machine import facts
from tui_picture import Picture
from tui_teller import TRIALS, Teller, events_of, snapshot_of

from sessions.history import Order, View
from sessions.host.events import Gpu, TargetSeen, TargetView
from tests.terminal.pty_app import PtyApp
from tests.tui.seeding import History, opened, seed_many
from tui.history.window import load

REPO = Path(__file__).resolve().parents[2]
CHILD = (sys.executable, str(Path(__file__).with_name("tui_child.py")))
APP = (sys.executable, "-m", "kerneldeck", "tui")
WAITING = 10_000
BYTE_CODE = Path(tempfile.gettempdir()) / f"kd-bench-pyc-{os.getuid()}"
RATE, KEYS = 50.0, 100
PARTS = ("help", "history", "keys", "bytes", "burst", "idle", "first-paint")
IDLE_S, SWEEP_S, BURST_S, BURST_RATE = 60.0, 15.0, 10.0, 1000.0
HEAVY = ("textual", "asyncssh", "scipy", "sklearn")


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


# What is measured


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "SSH_"))}
    # As installed: byte code is kept, in whichever folder the surroundings name.
    for name in ("COLORTERM", "NO_COLOR", "LC_ALL", "PYTHONDONTWRITEBYTECODE"):
        kept.pop(name, None)
    kept |= {"TERM": "tmux-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(REPO)}
    return kept | {"PYTHONPYCACHEPREFIX": str(BYTE_CODE)} | changes


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
    threads = [task for one in descendants(pid) for task in Path(f"/proc/{one}/task").glob("*/schedstat")]
    return sum(int(task.read_text().split()[0]) for task in threads) / 1e9


def memory_mb(pid: int) -> float:
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in descendants(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def help_time(folder: Path) -> Iterator[Figure]:
    times, used = [], []
    for number in range(8):
        began, before = time.perf_counter(), os.times()
        subprocess.run([*APP[:3], "--help"], cwd=folder, env=environment(), check=True, capture_output=True)
        if number:  # the first one makes the byte code
            times.append((time.perf_counter() - began) * 1000)
            after = os.times()
            used.append(
                1000 * sum(after[2:4]) - 1000 * sum(before[2:4])  # of children: user, system
            )
    note = f"processor {statistics.mean(used):.0f}"
    yield Figure("kerneldeck --help", statistics.median(times), 150, "ms", note)
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
    times, used, filled = [], [], []
    for number in range(6):
        began = time.perf_counter()
        with PtyApp(APP, surroundings, str(root)) as app:
            app.read_until(has("Context"), 60.0)
            first_s, first_used_s = time.perf_counter() - began, cpu_s(app.pid)
            app.read_until(lambda written: re.search(rb"\d runs", written) is not None, 60.0)
            whole_s = time.perf_counter() - began
            app.press("q")
            app.wait()
        if number:  # the first one makes the byte code, and starts the host
            times.append(first_s * 1000)
            used.append(first_used_s * 1000)
            filled.append(whole_s * 1000)
    note = f"slowest {max(times):.0f}, processor {statistics.median(used):.0f}"
    note += f"; with what the files and the history say {statistics.median(filled):.0f}"
    yield Figure("first paint", statistics.median(times), 600, "ms", note)


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
    """From a key to the row that it leads to, ms."""
    times = []
    picture = Picture()
    for _ in range(KEYS):
        wanted = re.compile(rf">[ *] *#{_cursor_row(picture.after(bytes(app.written))) - 1} ")
        began = time.perf_counter()
        app.press("j")
        app.read_until(lambda written, wanted=wanted: wanted.search(picture.after(written)) is not None, 10.0)
        times.append((time.perf_counter() - began) * 1000)
        app.read_for(0.03 + 0.05 * (len(times) % 3))
    return times


def _cursor_row(shown: str) -> int:
    """The trial under the cursor."""
    row = _CURSOR.search(shown)
    assert row is not None, f"no row has the cursor:\n{shown}"
    return int(row[1])


_CURSOR = re.compile(r">[ *] *#(\d+) ")


def keys_under_load(history: History, names: list[str], folder: Path) -> Iterator[Figure]:
    with told_app(history, names, folder) as (app, teller):
        app.press("4")
        app.read_until(lambda written: re.search(rb">[ *] *#\d+ ", written) is not None)
        teller.rate = RATE
        app.read_for(2.0)
        app.press("j")  # from now on nothing follows the newest
        app.read_for(1.0)
        before_s, began = cpu_s(app.pid), time.perf_counter()
        times = sorted(key_times(app))
        used = 100 * (cpu_s(app.pid) - before_s) / (time.perf_counter() - began)
        teller.rate = 0.0
    p95 = times[int(0.95 * len(times))]
    note = f"median {statistics.median(times):.0f}, slowest {times[-1]:.0f}, {used:.0f} % of a core"
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
        wanted = re.compile(rf"\b({ended:,}|{ended}) ok")
        picture = Picture()
        app.read_until(lambda written: wanted.search(picture.after(written)) is not None, 20.0)
        lag_ms = (time.perf_counter() - began) * 1000
    note = f"at {rate:,.0f} events/s"
    yield Figure("burst of 1,000 events/s for 10 s: right after", lag_ms, 1000, "ms", note)
    yield Figure("  its memory grows by", after_mb - before_mb, 10, "MB", f"{after_mb:.0f} MB in all")


def end_host(root: Path, surroundings: dict[str, str]) -> None:
    subprocess.run([*APP[:3], "host", "stop"], cwd=root, env=surroundings, capture_output=True)


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = sys.argv[1:] or PARTS
    if unknown := [name for name in wanted if name not in PARTS]:
        sys.exit(f"there is no {unknown[0]}; there are {', '.join(PARTS)}")
    print(f"the app against its budgets: {facts('textual')}")
    print(f"{'':<52}{'measured':>10}{'budget':>9}")
    with tempfile.TemporaryDirectory(prefix="kd-bench-") as scratch:
        measured(wanted, Path(scratch))


def measured(wanted: Sequence[str], folder: Path) -> None:
    if "help" in wanted:
        show(lambda: help_time(folder))
    if set(wanted) <= {"help"}:
        return
    root = folder / "w"
    history = seeded(root)
    names = [f"{number:064x}" for number in range(WAITING)]
    told: dict[str, Callable[[], Iterator[Figure]]] = {
        "history": lambda: reading(history),
        "keys": lambda: keys_under_load(history, names, folder / "keys"),
        "bytes": lambda: sweep_bytes(history, names, folder / "bytes"),
        "burst": lambda: burst(history, names, folder / "burst"),
        "idle": lambda: idle_connected(history, folder / "idle"),
    }
    for name, measure in told.items():
        if name in wanted:
            show(measure)
    history.store.close()
    history.reader.store.close()
    surroundings = environment(XDG_RUNTIME_DIR=str(folder), KERNELDECK_HOST_IDLE_S="60")
    try:
        if "first-paint" in wanted:
            show(lambda: first_paint(root, surroundings))
        if "idle" in wanted:
            show(lambda: idle_local(root, surroundings))
    finally:
        end_host(root, surroundings)


def seeded(root: Path) -> History:
    """A shipped workspace with its long history and a best."""
    shutil.copytree(REPO / "kernels" / "cpu_rmsnorm", root)
    shutil.copy(REPO / "kernels" / "kerneldeck_timing.py", root)
    history = opened(root)
    seed_many(history, TRIALS)
    first = history.store.trial(1)
    assert first is not None
    history.best(first)
    return history


def show(measure: Callable[[], Iterator[Figure]]) -> None:
    """Print the figures as they come; a measurement that fails says so and the others go on."""
    try:
        for figure in measure():
            print(figure, flush=True)
    except AssertionError as error:
        print(f"not measured: {error}", flush=True)


if __name__ == "__main__":
    main()
