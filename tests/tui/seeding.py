"""Stores with a history in them, written as the product writes it, or many rows at once."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

from core.measure.decision import Decision
from core.measure.evidence import CaseEvidence, ProcessEvidence
from core.measure.floor import Prior
from core.measure.gate import decide
from core.measure.reading import Channel
from core.measure.rule import Rule
from core.records import Candidate, Checkpoint, DecisionRecord, FileVersion, TrialRecord
from core.words import JsonObject, Overlay, Status
from sessions.history import HistoryReader, Scope
from sessions.state_dir import StatePlace, locate
from sessions.store import SessionStore, open_read, open_write

CONTRACT = "c0ffee" + "0" * 58
KNOBS = ("BLOCK_M", "num_warps", "schedule")
SCOPE = Scope(CONTRACT, "final", ("dev", "final"), "best_us", "us", True, KNOBS)
STARTED_S = 1_760_000_000.0


@dataclass
class History:
    """A store that is written to, and a reader with a connection of its own."""

    place: StatePlace
    store: SessionStore
    reader: HistoryReader

    def candidate(self, overlay: Overlay, source: str = "def kernel(): pass\n") -> Candidate:
        """A candidate whose two files are kept."""
        config = self.store.blobs.put(json.dumps(overlay, indent=1).encode())
        kernel = self.store.blobs.put(source.encode())
        files = {"config.json": FileVersion(config), "kernel.py": FileVersion(kernel)}
        candidate = Candidate(files, overlay)
        self.store.add_candidate(candidate)
        return candidate

    def begin(
        self, candidate: Candidate, mode: str = "dev", purpose: str = "screen", **more: object
    ) -> TrialRecord:
        record = TrialRecord(
            candidate.id, CONTRACT, mode, purpose, "h200-3", "cli", overlay=candidate.overlay,
            started_s=STARTED_S, **more,  # type: ignore[arg-type]
        )  # fmt: skip
        return self.store.begin_trial(record)

    def trial(
        self,
        overlay: Overlay,
        score: float | None = None,
        status: Status = Status.OK,
        reason: str = "",
        result: JsonObject | None = None,
        **more: object,
    ) -> TrialRecord:
        """A trial that began and ended."""
        started = self.begin(self.candidate(overlay), **more)  # type: ignore[arg-type]
        return self.end(started, score, status, reason, result)

    def end(
        self,
        started: TrialRecord,
        score: float | None = None,
        status: Status = Status.OK,
        reason: str = "",
        result: JsonObject | None = None,
    ) -> TrialRecord:
        ended = started.ended(
            status, reason, score=score, duration_s=1.5, exit_code=0, output_dir=str(started.id)
        )
        self.store.end_trial(ended, result)
        return ended

    def best(self, trial: TrialRecord, anchor: float | None = None) -> Checkpoint:
        """Make the trial's candidate the best."""
        candidate = self.store.candidate(trial.candidate_id)
        assert candidate is not None
        checkpoint = Checkpoint(
            candidate.id,
            CONTRACT,
            candidate.files,
            candidate.overlay,
            STARTED_S,
            trial.id,
            anchor,
            "kept by a test",
        )
        self.store.keep(checkpoint, None)
        return checkpoint

    def decide(self, best: Checkpoint, trial: TrialRecord, gain: float = 0.03) -> DecisionRecord:
        """A verdict of the gate on the trial's candidate, with evidence that shows `gain`."""
        processes = [_process(best, trial, gain, number) for number in range(4)]
        channel = Channel(tuple(processes), Prior(1e-6, 40.0, 0.0, 0.0))
        decision = decide(Rule(), channel)
        assert isinstance(decision, Decision)
        record = DecisionRecord(
            CONTRACT, trial.candidate_id, best.id, "verify", "h200-3", decision.verdict, decision.gain,
            decision.processes, decision.to_json(), [one.to_json() for one in processes], 7, STARTED_S, "cli",
        )  # fmt: skip
        return self.store.add_decision(record, [trial.id])


def _process(best: Checkpoint, trial: TrialRecord, gain: float, number: int) -> ProcessEvidence:
    wobble = 1e-4 * (number - 1.5)
    cases = tuple(
        CaseEvidence(name, -gain + wobble, wobble, (100.0, 100.01), 100.0 * (1 - gain))
        for name in ("small", "large")
    )
    return ProcessEvidence(
        "launch_us", "event_pair", "lower", "arms_together", -gain + wobble, wobble, (800.0, 800.1),
        800.0 * (1 - gain), cases, 12,
    )  # fmt: skip


def result_of(*names: str, seed: int = 1) -> JsonObject:
    """A result with samples, launch, kernel and floor times of some cases."""
    chance = random.Random(seed)
    return {
        "status": "passed", "best_us": 812.4, "mode": "dev", "device": "H200",
        "cases": [
            {
                "name": name, "status": "passed", "best_us": 400.0, "median_us": 406.0, "max_abs": 1e-3,
                "kernel_us": 390.0, "floor_us": 310.0, "registers": 168, "spills": 0,
                "samples": {
                    "launch_us": {
                        "engine": "event_pair", "unit": "us",
                        "blocks": [_block(chance) for _ in range(12)],
                    }
                },
            }
            for name in names
        ],
    }  # fmt: skip


def _block(chance: random.Random) -> list[float]:
    return [400 * chance.lognormvariate(0, 0.02) for _ in range(25)]


def opened(root: Path) -> History:
    """A new store at `root` that knows one contract."""
    root.mkdir(parents=True, exist_ok=True)
    place = locate(root)
    store = open_write(place)
    store.put_contract(CONTRACT, {"objective": {"metric": "best_us"}, "target": {"name": "h200-3"}})
    reading = open_read(place)
    assert reading is not None
    return History(place, store, HistoryReader(reading, SCOPE))


def seed_many(history: History, count: int) -> None:
    """`count` ended trials of a fourth as many candidates, nine in ten ok, in one transaction."""
    chance = random.Random(1)
    template = history.trial({"BLOCK_M": 64, "num_warps": 4, "schedule": "persistent"}, 812.4)
    with history.store.database.transaction("seed") as connection:
        names = [f"{number:064x}" for number in range(max(1, count // 4))]
        connection.executemany(
            "INSERT INTO candidates (id, files, overlay) VALUES (?, '{}', '{}')", [(name,) for name in names]
        )
        columns = [row[1] for row in connection.execute("PRAGMA table_info(trials)")]
        (known,) = connection.execute("SELECT * FROM trials WHERE id = ?", (template.id,)).fetchall()
        base = dict(zip(columns, known, strict=True))
        rows = [_row(base, number, names, chance) for number in range(template.id + 1, template.id + count)]
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f"INSERT INTO trials ({', '.join(columns)}) VALUES ({marks})",
            [tuple(row[name] for name in columns) for row in rows],
        )


def _row(base: JsonObject, number: int, names: list[str], chance: random.Random) -> JsonObject:
    block, warps = chance.choice((32, 64, 128)), chance.choice((2, 4, 8))
    overlay = {"BLOCK_M": block, "num_warps": warps, "schedule": "persistent"}
    ok = chance.random() < 0.9
    return base | {
        "id": number,
        "candidate_id": names[number % len(names)],
        "mode": "final" if number % 10 == 0 else "dev",
        "purpose": "gate" if number % 10 == 0 else "screen",
        "overlay": json.dumps(overlay, separators=(",", ":")),
        "status": "ok" if ok else chance.choice(("crash", "oom", "incorrect", "compile_error")),
        "reason": "" if ok else "shared memory 232448 > 227328 bytes",
        "score": 800 * chance.lognormvariate(0, 0.3) if ok else None,
        "started_s": STARTED_S + number,
        "duration_s": 1.0 + number % 7,
    }
