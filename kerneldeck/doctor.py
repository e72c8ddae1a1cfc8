"""`kerneldeck doctor`: what Kerneldeck works with here, each line with what to do about it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import KerneldeckError
from kerneldeck import streams
from kerneldeck.doctor_terminal import Finding, terminal_findings
from kerneldeck.doctor_tmux import tmux_findings
from kerneldeck.text import printable
from sessions.faults import shown

if TYPE_CHECKING:
    from core.targets.ssh.places import Place

_LITTLE_ROOM_BYTES = 500_000_000


def examine(start: Path, as_json: bool) -> int:
    """Print the findings; exit code 0, whatever they are."""
    findings = list(_findings(start))
    with streams.answering():
        if as_json:
            print(json.dumps({"findings": [asdict(finding) for finding in findings]}))
        else:
            _print(findings)
    return 0


def _print(findings: list[Finding]) -> None:
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        print(printable(f"{'ok  ' if finding.ok else 'WARN'}  {finding.topic:<{width}}  {finding.said}"))
        if finding.remedy:
            print(printable(f"      {'':<{width}}  {finding.remedy}"))
    warnings = sum(not finding.ok for finding in findings)
    print(f"{len(findings)} looked at, {warnings} to see to" if warnings else f"{len(findings)} looked at")


def _findings(start: Path) -> Iterator[Finding]:
    yield from terminal_findings(os.environ, sys.stdout)
    yield from tmux_findings(os.environ)
    for topic, look in (("workspace", _workspace), ("host's socket", _socket), ("targets", _targets)):
        yield from _guarded(topic, partial(look, start))


def _guarded(topic: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What cannot be looked at is itself a finding."""
    try:
        yield from look()
    except KerneldeckError as fault:
        yield Finding(topic, False, fault.sentence, fault.hint)
    except OSError as error:
        yield Finding(topic, False, f"{error.strerror or error}", "look at that name and its permissions")


def _workspace(start: Path) -> Iterator[Finding]:
    from core.workspace.finding import find_workspace
    from core.workspace.toml_reader import read_workspace
    from sessions.filesystem import filesystem_kind, free_bytes
    from sessions.state_dir import locate

    workspace = read_workspace(find_workspace(start))
    place = locate(workspace.root, workspace.config.state_dir)
    yield Finding("workspace", True, f"{workspace.config.name} in {shown(workspace.root)}")
    kind = filesystem_kind(place.folder)
    said = f"{shown(place.folder)} on {kind}"
    if place.network:
        remedy = "other machines may share it; it works, more slowly: `state_dir` moves it to a local disk"
        yield Finding("state folder", False, said, remedy)
    else:
        yield Finding("state folder", True, said)
    room = free_bytes(place.folder)
    enough = room >= _LITTLE_ROOM_BYTES
    remedy = "" if enough else "make room: kerneldeck gc removes old samples and contents"
    yield Finding("room on its disk", enough, f"{room / 1e9:.1f} GB", remedy)


def _socket(start: Path) -> Iterator[Finding]:
    from sessions.host.place import check_socket
    from sessions.host.reaching import host_place
    from sessions.lock import holder_of

    place, here = host_place(start)
    there = check_socket(here.socket)
    yield Finding("host's socket", True, f"{shown(here.socket)}{'' if there else ' (no host runs)'}")
    holder = holder_of(place)
    if holder is not None and holder.socket and holder.socket != str(here.socket):
        said = f"the host was started from another environment, at {shown(holder.socket)}"
        yield Finding("host", True, f"{said}; it is used all the same")


def _targets(start: Path) -> Iterator[Finding]:
    from core.targets.ssh.places_file import choose, targets_file
    from core.targets.ssh.places_toml import read_places

    path = targets_file(os.environ)
    places = dict(read_places(path).by_name)
    meant = choose("", os.environ, path)
    yield Finding("target in use", True, f"{meant.name} ({meant.source or 'nothing else was said'})")
    places.setdefault(meant.name, meant)
    for place in places.values():
        if place.address is not None:
            yield from _guarded(f"target {place.name}", partial(_ssh, place))


def _ssh(place: Place) -> Iterator[Finding]:
    from core.targets.ssh.user_config import effective, ignored_options

    assert place.address is not None
    topic = f"target {place.name}"
    hops = effective(place.address, key_file=place.key_file).hops
    last = hops[-1]
    keys = ", ".join(shown(path) for path in last.present_keys) or "no key file"
    agent = "an agent" if last.agent else "no agent"
    way = f" by way of {', '.join(hop.name for hop in hops[:-1])}" if len(hops) > 1 else ""
    alive = f"asked every {last.keepalive_s:g} s whether it is still there"
    usable = bool(last.present_keys or last.agent)
    remedy = "" if usable else "make a key (ssh-keygen) or start an agent: passwords are never asked for"
    said = f"{last.user}@{last.host} port {last.port}{way}; {keys}, {agent}; {alive}"
    yield Finding(topic, usable, said, remedy)
    ignored = ignored_options(place.address)
    if ignored:
        said = f"options of the ssh configuration that are not obeyed: {', '.join(ignored)}"
        yield Finding(topic, True, said, "none of them is needed; they matter to the ssh command alone")
