"""Exact scores of many plans: the array cost model plus the jitter, hashed for all rows at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from tensor_plan_arrays import NOTHING_OPEN, Columns, Flags, Floats, chunks
from tensor_plan_model import CASES, JITTER_SPAN
from tensor_plan_sha256 import BLOCK_BYTES, INITIAL_STATE, Bytes, blocks_of, compress, first_words
from tensor_plan_space import DOMAINS, Value
from tensor_plan_terms import Case

CHUNK_ROWS = 1 << 14


def scores(mode: str, rows: Columns) -> NDArray[np.int64]:
    """best_cycles (n,) of the plans in `rows`, equal to the scalar model's for valid and invalid ones alike.

    Rows are worked off in chunks, so that memory stays bounded.
    """
    parts = [_scores(CASES[mode], chunk) for chunk in chunks(rows, CHUNK_ROWS)]
    return np.concatenate([np.empty(0, np.int64), *parts])


def passed(mode: str, rows: Columns) -> Flags:
    """Whether each plan is valid and within tolerance in every case of the mode, (n,)."""
    return reduce(np.logical_and, (NOTHING_OPEN.may_pass(case, rows) for case in CASES[mode]))


def _scores(cases: Sequence[Case], rows: Columns) -> NDArray[np.int64]:
    jitters = jitter_cycles([case.seed for case in cases], rows)
    cycles = (NOTHING_OPEN.base_cycles(case, rows) + next(jitters) for case in cases)
    return np.maximum(1, reduce(np.maximum, cycles).astype(np.int64))


def jitter_cycles(seeds: Sequence[int], rows: Columns) -> Iterator[Floats]:
    """The jitter (n,) of each seed; what stands before the seed in the text is hashed only once."""
    letters, lengths = plan_texts(rows)
    shared = int(lengths.min()) // BLOCK_BYTES * BLOCK_BYTES
    state = reduce(compress, blocks_of(letters[:, :shared]), INITIAL_STATE)
    for seed in seeds:
        ending, ending_lengths = letters[:, shared:].copy(), lengths - shared
        tail = np.frombuffer(f'}}, "seed": {seed}}}'.encode(), np.uint8)
        places = ending_lengths[:, np.newaxis] + np.arange(len(tail))
        np.put_along_axis(ending, places, tail[np.newaxis], axis=1)
        first = first_words(ending, ending_lengths + len(tail), state, bytes_before=shared)
        yield (first / 0xFFFFFFFF - 0.5) * JITTER_SPAN


# The text that is hashed is `{"plan": {"accum": "tree", ...}, "seed": 1}` with sorted keys. A piece is the
# part of one knob with what stands before it; all pieces lie in one row of letters.

SORTED_KNOBS = sorted(DOMAINS)
LONGEST_TAIL = 64


def _piece(knob: str, value: Value) -> bytes:
    before = '{"plan": {' if knob == SORTED_KNOBS[0] else ", "
    return f"{before}{json.dumps(knob)}: {json.dumps(value)}".encode()


PIECES = {knob: [_piece(knob, value) for value in DOMAINS[knob]] for knob in SORTED_KNOBS}
PIECE_LETTERS = np.frombuffer(b"".join(piece for pieces in PIECES.values() for piece in pieces), np.uint8)
PIECE_LENGTHS = np.array([len(piece) for pieces in PIECES.values() for piece in pieces], np.int32)
PIECE_STARTS = np.cumsum(PIECE_LENGTHS, dtype=np.int32) - PIECE_LENGTHS
FIRST_PIECES = dict(zip(PIECES, accumulate(map(len, PIECES.values()), initial=0), strict=False))
TEXT_WIDTH = (
    -(-(sum(max(map(len, pieces)) for pieces in PIECES.values()) + LONGEST_TAIL) // BLOCK_BYTES) * BLOCK_BYTES
)


def plan_texts(rows: Columns) -> tuple[Bytes, NDArray[np.intp]]:
    """The text up to the plan's closing brace: letters (n, TEXT_WIDTH), zero behind it, and lengths (n,)."""
    pieces = np.stack(
        [np.add(FIRST_PIECES[knob], rows[knob], dtype=np.intp) for knob in SORTED_KNOBS], axis=1
    ).ravel()
    lengths = PIECE_LENGTHS[pieces]
    starts_in_output = np.cumsum(lengths, dtype=np.int32) - lengths
    sources = np.repeat(PIECE_STARTS[pieces] - starts_in_output, lengths)
    sources += np.arange(len(sources), dtype=np.int32)
    text_lengths = lengths.reshape(-1, len(SORTED_KNOBS)).sum(axis=1)
    letters = np.zeros((len(text_lengths), TEXT_WIDTH), np.uint8)
    letters[np.arange(TEXT_WIDTH) < text_lengths[:, np.newaxis]] = PIECE_LETTERS[sources]
    return letters, text_lengths
