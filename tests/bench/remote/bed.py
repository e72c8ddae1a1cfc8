"""What the measurements stand on: an sshd, a proxy before it, OpenSSH's shared connection, and ours."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.targets.ssh.address import parse_address
from core.targets.ssh.host import SshHost
from core.targets.ssh.places import Place
from tests.bench.remote.proxy_process import Counts, ProxyProcess
from tests.remote.sshd import Server, User, make_key, serving

HOST = "box"


@dataclass(frozen=True, slots=True)
class Bed:
    """One way to the server: through a proxy with a delay, with OpenSSH's master connection open."""

    folder: Path
    server: Server
    proxy: ProxyProcess
    ssh: tuple[str, ...]  # as OpenSSH's client is called, without the shared connection
    shared: tuple[str, ...]  # and over it

    def host(self) -> SshHost:
        place = Place(
            HOST, parse_address(f"ssh:{HOST}"), scratch=str(self.folder / "scratch"), python=sys.executable
        )
        return SshHost(place)


@contextmanager
def bed_at(folder: Path, round_trip_s: float) -> Iterator[Bed]:
    """HOME is a made-up user's meanwhile, whose `box` is the server behind the proxy."""
    (folder / ".ssh").mkdir(parents=True)
    for name in ("host", "user"):
        make_key(folder / name)
    os.environ["HOME"] = str(folder)
    os.environ.pop("SSH_AUTH_SOCK", None)
    config, known = folder / ".ssh" / "config", folder / ".ssh" / "known"
    user = User(folder, folder / "user", known, config)
    with serving(folder / "sshd", folder / "host", [folder / "user"]) as server:
        proxy = ProxyProcess(server.port, round_trip_s / 2)
        try:
            known.write_text(server.known_hosts_line.replace(f"[127.0.0.1]:{server.port}", HOST))
            user.writes(HOST, proxy.port, f"HostKeyAlias {HOST}")
            ssh = ("ssh", "-F", str(config), "-o", "LogLevel=ERROR")
            shared = (*ssh, "-S", str(folder / "master"))
            with _master(shared):
                yield Bed(folder, server, proxy, ssh, shared)
        finally:
            proxy.close()


@contextmanager
def _master(shared: Sequence[str]) -> Iterator[None]:
    """OpenSSH goes into the background when its connection stands."""
    subprocess.run([*shared, "-M", "-f", "-N", HOST], check=True, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([*shared, "-O", "exit", HOST], check=True, capture_output=True)


@asynccontextmanager
async def opened(bed: Bed) -> AsyncIterator[SshHost]:
    host = bed.host()
    await host.open()
    try:
        yield host
    finally:
        await host.close()


class Series:
    """Times of one thing done over and over, and what went through the proxy meanwhile."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.times_ms: list[float] = []
        self.counts: list[Counts] = []

    def add(self, seconds: float, counts: Counts | None = None) -> None:
        self.times_ms.append(seconds * 1e3)
        if counts is not None:
            self.counts.append(counts)

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times_ms)

    @property
    def round_trips(self) -> float:
        return statistics.median(one.round_trips for one in self.counts)

    def row(self) -> str:
        times = f"{self.median_ms:>10,.1f}{min(self.times_ms):>10,.1f}{len(self.times_ms):>5}"
        if not self.counts:
            return f"  {self.what:<58}{times}"
        up, down = (
            statistics.median(getattr(one, name) for one in self.counts) / 1e3
            for name in ("up_bytes", "down_bytes")
        )
        return f"  {self.what:<58}{times}{self.round_trips:>8.0f}{up:>11,.1f}{down:>11,.1f}"


LEGEND = "n: how often measured; trips: times that the client waits for an answer; kB: 1,000 bytes, each way"
HEADINGS = f"  {'':<58}{'median ms':>10}{'best':>10}{'n':>5}{'trips':>8}{'kB up':>11}{'kB down':>11}"
