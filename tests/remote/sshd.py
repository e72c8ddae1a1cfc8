"""A real OpenSSH server on a loopback port for a test, and the files of a user who logs in to it.

It runs as the user who runs the tests, needs no privilege, and ends with the test. The login user is that
same user, with another HOME, so that nobody's own start-up files or keys take part.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or ""
_STARTS_WITHIN_S = 10.0


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A new key pair at `path` and `path`.pub."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


@dataclass(frozen=True, slots=True)
class Server:
    """A running sshd."""

    port: int
    pid: int
    host_key: Path
    home: Path
    log: Path

    @property
    def known_hosts_line(self) -> str:
        kind, key = self.host_key.with_suffix(".pub").read_text().split()[:2]
        return f"[127.0.0.1]:{self.port} {kind} {key}\n"

    def children(self) -> list[int]:
        """Every process that descends from this sshd now."""
        return descendants(self.pid)


def descendants(pid: int) -> list[int]:
    """The processes under `pid`, by a walk of /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found: list[int] = []
    layer = {pid}
    while layer:
        layer = {child for child, parent in parents.items() if parent in layer}
        found.extend(layer)
    return sorted(found)


@contextmanager
def serving(
    folder: Path, host_key: Path, authorized: Sequence[Path], options: Sequence[str] = (), port: int = 0
) -> Iterator[Server]:
    """An sshd with these options (sshd_config lines; the first of a kind counts), ended afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    port = port or free_port()
    keys = folder / "authorized_keys"
    keys.write_text("".join(key.with_suffix(".pub").read_text() for key in authorized))
    config, log = folder / "sshd_config", folder / "sshd.log"
    lines = [_with_own_locks(option, home) for option in (*options, *_usual(port, host_key, keys, home))]
    config.write_text("\n".join(lines) + "\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where a privileged sshd locks itself in before a login
    with log.open("wb") as told:
        process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stdout=told, stderr=told,
            start_new_session=True,
        )  # fmt: skip
    try:
        _wait_until_it_listens(process, port, log)
        yield Server(port, process.pid, host_key, home, log)
    finally:
        _end(process)


def _with_own_locks(option: str, home: Path) -> str:
    """No test waits for the trials of another."""
    return f"{option} KERNELDECK_LOCK_FOLDER={home}/locks" if option.startswith("SetEnv ") else option


def _usual(port: int, host_key: Path, authorized_keys: Path, home: Path) -> list[str]:
    return [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {host_key}",
        "PidFile none",
        f"AuthorizedKeysFile {authorized_keys}",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "PermitUserRC no",
        "PrintMotd no",
        "LogLevel VERBOSE",
        f"SetEnv HOME={home} KERNELDECK_LOCK_FOLDER={home.parent / 'locks'}",  # else all tests share a lock
    ]


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(int(_STARTS_WITHIN_S / 0.02)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        break
    raise RuntimeError(f"sshd did not start: {log.read_text()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and the sessions that it still has."""
    mine = descendants(process.pid)
    process.terminate()
    process.wait()
    kill_all(mine)


def kill_all(pids: Iterable[int]) -> None:
    """SIGKILL to each that still lives: one's end may end another first."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class User:
    """The near side: an ssh configuration, known hosts and keys of a made-up user."""

    folder: Path
    key: Path
    known_hosts: Path
    config: Path

    def trusts(self, server: Server) -> None:
        with self.known_hosts.open("a") as file:
            file.write(server.known_hosts_line)

    def writes(self, name: str, port: int, *options: str, key: Path | None = None) -> None:
        """Add a host block; `options` come first, and so win over the usual ones."""
        lines = [
            f"Host {name}",
            *(f"  {option}" for option in options),
            "  HostName 127.0.0.1",
            f"  Port {port}",
            f"  User {getpass.getuser()}",
            f"  IdentityFile {key or self.key}",
            "  IdentitiesOnly yes",
            f"  UserKnownHostsFile {self.known_hosts}",
            "  GlobalKnownHostsFile none",
        ]
        with self.config.open("a") as file:
            file.write("\n".join(lines) + "\n")
