"""Ranking a long history: `python tests/bench/bench_rank.py` prints a table."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path

from machine import facts

from core.records import Candidate, FileVersion, TrialRecord
from core.words import Status
from sessions.state_dir import locate
from sessions.store import SessionStore, open_read, open_write

TRIALS = 100_000
EACH = 4  # trials a candidate
ROUNDS = 9
CONTRACT = "c" * 64


def seed(store: SessionStore) -> None:
    """TRIALS ended trials of TRIALS / EACH candidates written as one transaction."""
    chance = random.Random(1)
    candidates = [Candidate({"k.json": FileVersion(f"{n:064x}")}, {"n": n}) for n in range(TRIALS // EACH)]
    store.put_contract(CONTRACT, {})
    for candidate in candidates[:1]:
        store.add_candidate(candidate)
    first = store.begin_trial(TrialRecord(candidates[0].id, CONTRACT, "final", "run", "local", "cli"))
    store.end_trial(first.ended(Status.OK, score=1.0), None)
    with store.database.transaction("seed") as connection:
        connection.executemany(
            "INSERT OR IGNORE INTO candidates (id, files, overlay) VALUES (?, '{}', '{}')",
            [(candidate.id,) for candidate in candidates],
        )
        columns = [row[1] for row in connection.execute("PRAGMA table_info(trials)")]
        (known,) = connection.execute("SELECT * FROM trials").fetchall()
        template = dict(zip(columns, known, strict=True))
        rows = []
        for number in range(2, TRIALS + 1):
            own = {
                "id": number,
                "candidate_id": candidates[number % len(candidates)].id,
                "mode": "final",
                "score": chance.lognormvariate(5, 0.3),
            }
            rows.append(tuple((template | own)[name] for name in columns))
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO trials ({', '.join(columns)}) VALUES ({marks})", rows)


def main() -> None:
    print(f"rank over {TRIALS:,} stored trials, {TRIALS // EACH:,} candidates: {facts()}")
    with tempfile.TemporaryDirectory() as scratch:
        place = locate(Path(scratch))
        with open_write(place) as store:
            seed(store)
        print(f"{'':<28}{'median ms':>10}{'slowest':>9}")
        for top_n in (10, 100):
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                reading = open_read(place)
                assert reading is not None
                with reading:
                    assert len(reading.rank(CONTRACT, "final", top_n)) == top_n
                times.append((time.perf_counter() - began) * 1000)
            print(f"{f'open and rank, top {top_n}':<28}{statistics.median(times):>10.1f}{max(times):>9.1f}")


if __name__ == "__main__":
    main()
