"""What the SSH target costs on this machine, beside OpenSSH and rsync: `make bench-remote`.

Everything runs against an sshd of its own on a loopback port, through a proxy that delays each direction and
counts bytes and round trips (times that the client speaks after the server has). Asserts nothing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from core.targets.ssh.address import parse_address
from core.targets.ssh.connect import connect
from core.targets.ssh.host import SshHost
from core.targets.ssh.link import AgentLink
from tests.bench.machine import facts
from tests.bench.remote import syncs, trials
from tests.bench.remote.bed import HEADINGS, HOST, LEGEND, Bed, Series, bed_at, opened
from tests.remote.sshd import SSHD

ROUND_TRIPS_S = (0.0, 0.04)
MOST_OVERHEAD_MS = 15.0
SIZES = ((5, 3_600, 3), (2_000, 10_500, 2))  # files, bytes of each, rounds
ROUNDS = 9


def main() -> int:
    if not shutil.which("ssh") or not shutil.which("rsync") or not SSHD:
        print("ssh, sshd or rsync is missing; sudo apt-get install openssh-client openssh-server rsync")
        return 0
    began = time.monotonic()
    print(f"SSH target against a local sshd: {facts('asyncssh')}; {_versions()}\n{LEGEND}")
    reached: list[str] = []
    for round_trip_s in ROUND_TRIPS_S:
        with tempfile.TemporaryDirectory(prefix="kd-") as folder, bed_at(Path(folder), round_trip_s) as bed:
            asyncio.run(_measure(bed, round_trip_s, reached))
    print("\nreach")
    print("\n".join(reached))
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    print(f"\n{time.monotonic() - began:.0f} s in all, load afterwards: {load:.1f}")
    if load > cores:
        print(f"load above the cores ({load:.1f} on {cores}): not to be trusted")
    return 0


def _versions() -> str:
    ssh = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=True).stderr.split(",")[0]
    rsync = subprocess.run(["rsync", "--version"], capture_output=True, text=True, check=True).stdout
    return f"{ssh}, rsync {rsync.split()[2]}"


async def _measure(bed: Bed, round_trip_s: float, reached: list[str]) -> None:
    at = f"{round_trip_s * 1e3:.0f} ms"
    print(f"\nround trip {at}\n{HEADINGS}", flush=True)
    _print(await _connecting(bed))
    async with opened(bed) as host:
        link = await host.link()
        _print(await _asking(bed, link))
        for size in SIZES:
            states = await syncs.synced(bed, link, *size)
            _print(series for pair in states for series in pair)
            reached += [_no_slower(at, *pair) for pair in states[1:]]
        reached.append(await _trials(bed, host, round_trip_s))


def _print(rows: Iterable[Series]) -> None:
    for series in rows:
        print(series.row(), flush=True)


def _no_slower(at: str, ours: Series, theirs: Series) -> str:
    word = "reached" if ours.median_ms <= theirs.median_ms else "not reached"
    what = f"{ours.what.rpartition(':')[0]} no slower than rsync"
    return f"  {word:<12} at {at}: {what} ({ours.median_ms:,.0f} and {theirs.median_ms:,.0f} ms)"


async def _connecting(bed: Bed) -> tuple[Series, ...]:
    """A login of ours, one with its agent greeted, and OpenSSH's."""
    login, greeted = Series("login: ours"), Series("login and a greeted agent: ours")
    alone, shared = Series("ssh HOST true, fresh"), Series("ssh HOST true, over the shared connection")
    async with opened(bed):  # the agent's program arrives, and asyncssh is imported
        pass
    for _ in range(ROUNDS):
        began = _begin(bed)
        connection = await connect(parse_address(f"ssh:{HOST}"))
        login.add(time.perf_counter() - began, bed.proxy.counts())
        await connection.close()
        host = bed.host()
        began = _begin(bed)
        await host.link()
        greeted.add(time.perf_counter() - began, bed.proxy.counts())
        await host.close()
        for series, words in ((alone, bed.ssh), (shared, bed.shared)):
            _runs_true(bed, series, words)
    return login, greeted, alone, shared


def _runs_true(bed: Bed, series: Series, words: Iterable[str]) -> None:
    began = _begin(bed)
    subprocess.run([*words, HOST, "true"], check=True, stdin=subprocess.DEVNULL)
    series.add(time.perf_counter() - began, bed.proxy.counts())


def _begin(bed: Bed) -> float:
    bed.proxy.counts()
    return time.perf_counter()


async def _asking(bed: Bed, link: AgentLink) -> tuple[Series]:
    series = Series("a request to the kept agent")
    for _ in range(3 * ROUNDS):
        began = _begin(bed)
        await link.request("ping", {}, 10.0)
        series.add(time.perf_counter() - began, bed.proxy.counts())
    return (series,)


async def _trials(bed: Bed, host: SshHost, round_trip_s: float) -> str:
    """Prints overhead and rates; says whether the overhead is what it may be."""
    with trials.engine_at(bed.folder / "workspace") as (engine, parts):
        target = trials.there(host, engine, parts)
        ours, local = await trials.overheads(bed, engine, target)
        _print((ours, local))
        if round_trip_s == ROUND_TRIPS_S[0]:
            print(f"  {'trials a minute':<58}{'cold':>10}{'forked':>10}", flush=True)
            for name, one in (("the local target", engine.target), ("ours", target)):
                print("\n".join(await trials.rates(bed, engine, one, name)), flush=True)
        await engine.target.close()
    most_ms = MOST_OVERHEAD_MS + 2 * round_trip_s * 1e3
    word = "reached" if ours.median_ms <= most_ms else "not reached"
    what = f"overhead of a warm trial {ours.median_ms:.1f} ms, {most_ms:.0f} may be"
    return f"  {word:<12} at {round_trip_s * 1e3:.0f} ms: {what} (best {min(ours.times_ms):.1f} ms)"


if __name__ == "__main__":
    sys.exit(main())
