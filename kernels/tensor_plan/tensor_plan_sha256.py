"""SHA-256 (FIPS 180-4) of many texts at once, in uint32 arrays: no Python loop over texts."""

from __future__ import annotations

import math
from functools import reduce
from itertools import islice

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Bytes = NDArray[np.uint8]

BLOCK_BYTES = 64


def _primes() -> list[int]:
    candidates = (n for n in range(2, 400) if all(n % d for d in range(2, math.isqrt(n) + 1)))
    return list(islice(candidates, 64))


def _root_fraction(number: int, power: int) -> int:
    """The first 32 bits of the fractional part of a square (2) or cube (3) root."""
    scaled, root = number << 32 * power, 0
    for bit in reversed(range(40)):
        if (root | 1 << bit) ** power <= scaled:
            root |= 1 << bit
    return root & 0xFFFFFFFF


ROUND_CONSTANTS: Words = np.array([_root_fraction(prime, 3) for prime in _primes()], np.uint32)
INITIAL_STATE: Words = np.array([_root_fraction(prime, 2) for prime in _primes()[:8]], np.uint32)[
    :, np.newaxis
]
SHIFTS = [np.array(count, np.uint32) for count in range(33)]


def compress(state: Words, block: Words) -> Words:
    """The state (8, n) after a block (16, n) of big-endian words; a state of one column stands for all."""
    schedule = list(block.copy())
    registers = list(np.broadcast_to(state, (8, block.shape[1])))
    for step, constant in enumerate(ROUND_CONSTANTS):
        if step >= 16:
            _extend(schedule, step)
        _advance(registers, schedule[step % 16] + constant)
    after: Words = state + np.stack(registers)
    return after


def _extend(schedule: list[Words], step: int) -> None:
    """Put the word of this step over the one sixteen steps back: few arrays stay few enough for the cache."""
    near, far, word = schedule[(step - 15) % 16], schedule[(step - 2) % 16], schedule[step % 16]
    word += near >> SHIFTS[3] ^ _rotations(near, 7, 18)
    word += far >> SHIFTS[10] ^ _rotations(far, 17, 19)
    word += schedule[(step - 7) % 16]


def _advance(registers: list[Words], word: Words) -> None:
    """One round on the eight registers, with the step's word and constant already added up."""
    a, b, c, d, e, f, g, h = registers
    word += h
    word += _rotations(e, 6, 11, 25)
    word += g ^ (e & (f ^ g))
    summed = _rotations(a, 2, 13, 22)
    summed += (a & b) | (c & (a | b))
    summed += word
    registers[:] = summed, a, b, c, d + word, e, f, g


def _rotations(words: Words, *counts: int) -> Words:
    """Right rotations of the words by each count, xored."""
    return reduce(np.bitwise_xor, (words >> SHIFTS[count] | words << SHIFTS[32 - count] for count in counts))


def blocks_of(letters: Bytes) -> Words:
    """Texts (n, blocks * 64) as big-endian words (blocks, 16, n)."""
    words = np.ascontiguousarray(letters).view(">u4").T.astype(np.uint32)
    return words.reshape(-1, 16, len(letters))


def first_words(
    letters: Bytes, lengths: NDArray[np.intp], state: Words = INITIAL_STATE, bytes_before: int = 0
) -> NDArray[np.uint32]:
    """The first 32 bits (n,) of each text's digest.

    `letters` (n, width) holds a text in each row and zeros behind it, nine bytes or more; it is written to. A
    text may be the rest of a longer one: `state` is then that after its first `bytes_before`, whole blocks.
    """
    last_blocks = _pad(letters, lengths, bytes_before) - 1
    first = np.empty(len(letters), np.uint32)
    for number, block in enumerate(blocks_of(letters[:, : (last_blocks.max() + 1) * BLOCK_BYTES])):
        state = compress(state, block)
        np.copyto(first, state[0], where=last_blocks == number)
    return first


def _pad(letters: Bytes, lengths: NDArray[np.intp], bytes_before: int) -> NDArray[np.intp]:
    """Put end mark and bit length behind each text, in place; returns the number of its blocks (n,)."""
    rows = np.arange(len(letters))
    blocks = (lengths + 9 + BLOCK_BYTES - 1) // BLOCK_BYTES
    letters[rows, lengths] = 0x80
    bits = (8 * (bytes_before + lengths)).astype(">u8").view(np.uint8).reshape(-1, 8)
    letters[rows[:, np.newaxis], blocks[:, np.newaxis] * BLOCK_BYTES - 8 + np.arange(8)] = bits
    return blocks
