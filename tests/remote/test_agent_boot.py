"""How an agent comes to life: the boot line, the marker, the bundle, the first word."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh import bundle as bundles
from core.targets.ssh.bundle import Boot, bundle, bundle_sha256
from core.targets.ssh.link import AgentLink
from core.targets.ssh.remote_trials import greet
from core.targets.ssh.wire import PROTOCOL, NoFrame, Unframer, frame, safe_name
from core.words import JsonObject
from tests.remote.agents import PipeChannel, agent, linked, run, started

FILES = list(bundles._MODULES)


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_the_remote_side_is_written_in_python_3_8(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 8))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    calls = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id == "os")
    }
    assert (
        calls & {"removeprefix", "removesuffix", "is_relative_to", "readlink", "bit_count", "file_digest"}
        == set()
    )


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_the_remote_side_imports_the_standard_library_only(file: Path) -> None:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    ours = {each.stem for each in FILES}
    foreign = {name for name in names - ours if not name.startswith("core.targets")}
    assert {name for name in foreign if name.partition(".")[0] not in sys.stdlib_module_names} == set()


def test_the_boot_line_means_the_same_to_every_shell() -> None:
    line = Boot(scratch="~/it's a $HOME `x` \\ \n! é", python="/opt/py-3.12/bin/python3").line
    assert re.fullmatch(r"exec [a-zA-Z0-9_./+-]+ -X utf8 -I -S -u -c '[^'\n\\$!`]*'", line)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "tcsh", "busybox"])
def test_shells_take_the_boot_line(tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        return  # the form of the line is tested above
    words = [program, "sh"] if shell == "busybox" else [program]
    boot = Boot(scratch=str(tmp_path / "s"))
    done = subprocess.run([*words, "-c", boot.line], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.stdout.startswith(b"\x1e" + boot.marker.encode() + b" 3.")


@pytest.mark.parametrize("minor", [6, 7, 8, 9, 10, 12, 13, 14])
def test_other_pythons_run_the_agent_or_are_refused(tmp_path: Path, minor: int) -> None:
    python = shutil.which(f"python3.{minor}")
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode != 0:
        return  # the syntax is tested above

    async def main() -> None:
        boot = Boot(scratch=str(tmp_path / "s"), python=python)
        process = await started(boot)
        if minor < 8:
            with pytest.raises(TargetFault, match=r"3\.8 or newer is needed"):
                await AgentLink.open(PipeChannel(process), boot)
        else:
            link = await AgentLink.open(PipeChannel(process), boot)
            assert (await greet(link)).python.startswith(f"3.{minor}.")
            await link.close()
        await process.wait()

    run(main())


@pytest.mark.parametrize("python", ["python3; rm x", "python", "../python3", "", "/a b", "/a'b"])
def test_a_python_that_a_shell_could_read_otherwise_is_refused(python: str) -> None:
    with pytest.raises(TargetFault, match="is no path of a Python interpreter"):
        Boot(python=python)


@pytest.mark.parametrize("scratch", ["relative", "", "/a\0b"])
def test_a_scratch_folder_is_named_in_full(scratch: str) -> None:
    with pytest.raises(TargetFault, match="is no path of a scratch folder"):
        Boot(scratch=scratch)


def test_the_bundle_is_sent_once_and_kept_by_its_hash(tmp_path: Path) -> None:
    sent: list[int] = []

    async def main() -> None:
        for _ in range(2):
            async with agent(tmp_path / "s") as there:
                sent.append(there.channel.sent_bytes)
        kept = tmp_path / "s" / f"agent-{bundle_sha256()}"
        assert kept.read_bytes() == bundle()
        kept.chmod(0o600)
        kept.write_bytes(b"print('another program')")
        async with agent(tmp_path / "s") as there:
            sent.append(there.channel.sent_bytes)

    run(main())
    assert sent[0] > len(bundle()) and sent[2] > len(bundle())
    assert sent[1] < 400


class Scripted:
    """A channel whose other side says what a test says; it keeps what it is sent."""

    def __init__(self, *said: bytes) -> None:
        self.said = list(said)
        self.sent = b""
        self.sent_before_marker = b""

    async def read(self, n: int) -> bytes:
        if not self.said:
            await asyncio.Event().wait()
        chunk = self.said.pop(0)
        if b"\x1e" in chunk:
            self.sent_before_marker = self.sent
        return chunk

    def write(self, content: bytes, /) -> None:
        self.sent += content

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        self.said.append(b"")


def test_noise_before_the_marker_is_passed_over_and_nothing_is_sent_before_it() -> None:
    async def main() -> None:
        boot = Boot()
        line = b"\x1e" + boot.marker.encode() + b" 3.11 need\n"
        channel = Scripted(
            b"Welcome!\r\n\xff\x1e", b"\x1ewrong 3.11 have\n" + line[:7], line[7:] + frame({"x": 1})
        )
        link = await AgentLink.open(channel, boot)
        assert channel.sent_before_marker == b""
        assert channel.sent == bundle()
        await link.close()

    run(main())


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            [b"This account is not available.\n", b""],
            "before it ended; it printed: This account is not available.",
        ),
        ([b""], "did not start the agent before it ended"),
        ([b"\x1e\x1b[31mred"], "within 0.05 s; it printed: [31mred"),
        ([b"x" * 1_100_000], "in its first megabyte"),
    ],
)
def test_a_shell_that_starts_no_agent_is_told_with_what_it_printed(said: list[bytes], sentence: str) -> None:
    async def main() -> None:
        channel = Scripted(*said)
        with pytest.raises(TargetFault) as caught:
            await AgentLink.open(channel, Boot(), 0.05)
        assert caught.value.stage == "shell"
        assert sentence in caught.value.sentence
        assert channel.sent == b""

    run(main())


def test_an_old_python_is_refused_with_a_sentence() -> None:
    async def main() -> None:
        boot = Boot()
        channel = Scripted(b"\x1e" + boot.marker.encode() + b" 3.6 need\n")
        with pytest.raises(TargetFault, match=r"python3 there is 3\.6, 3\.8 or newer is needed") as caught:
            await AgentLink.open(channel, boot)
        assert caught.value.stage == "shell"
        assert channel.sent == b""

    run(main())


def test_another_protocol_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async def main() -> None:
        async with linked(tmp_path / "s") as (link, _, _):
            with pytest.raises(TargetFault, match=f"speaks protocol {PROTOCOL}, 0 was asked for") as caught:
                await link.request("hello", {"protocol": 0, "silence_s": 9, "locks": None}, 10)
            assert caught.value.stage == "shell"
            with pytest.raises(TargetFault, match="was asked before hello"):
                await link.request("trials", {}, 10)
            await greet(link)

    run(main())


SENSELESS: list[tuple[str, JsonObject]] = [
    ("fly", {}),
    ("run", {}),
    ("put", {"blobs": 3, "end": True}),
    ("attach", {"trial": 3}),
    ("manifest", {"files": [[1]], "folders": []}),
]


def test_requests_that_make_no_sense_are_answered_and_end_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            for word, fields in SENSELESS:
                with pytest.raises(TargetFault):
                    await there.link.request(word, fields, 10)
            await there.link.request("ping", {}, 10)

    run(main())


def test_what_is_no_frame_ends_the_agent(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            there.channel.write(b"\xff" * 64)
            assert await there.process.wait() == 0

    run(main())


def test_an_agent_ends_when_its_input_closes_and_when_nobody_reads_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            there.channel.close()
            assert await there.process.wait() == 0
        async with agent(tmp_path / "s") as there:
            there.process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
            there.channel.write(frame({"op": "ping", "id": 99}))
            assert await there.process.wait() == 0

    run(main())


def test_frames_come_apart_as_they_were_put_together() -> None:
    sent = [({"a": 1}, b""), ({"b": "é\udcff" * 3000}, b"body"), ({}, b"\0" * (1 << 20))]
    for deflate in (False, True):
        stream = b"".join(frame(header, body, deflate) for header, body in sent)
        for step in (1 << 16, len(stream)):
            unframer = Unframer()
            read = [
                each for at in range(0, len(stream), step) for each in unframer.feed(stream[at : at + step])
            ]
            assert read == sent


def test_a_body_is_deflated_when_that_makes_it_smaller() -> None:
    assert len(frame({}, bytes(100_000), deflate=True)) < 1000
    packed = os.urandom(100_000)
    assert packed in frame({}, packed, deflate=True)


@pytest.mark.parametrize(
    "stream",
    [
        b"\x04" + b"\0" * 8,
        b"\0\xff\xff\xff\xff\0\0\0\0",
        b"\0\0\0\0\2\0\0\0\0[]",
        b"\0\0\0\0\2\0\0\0\0{x",
        b"\1\0\0\0\2\0\0\0\0{}",
        frame({}, b"\0" * ((1 << 20) + 1), deflate=True),
        frame({}, b"\0" * 100, deflate=True).replace(b"\x78", b"\x79"),
    ],
)
def test_what_cannot_be_a_frame_is_refused(stream: bytes) -> None:
    with pytest.raises(NoFrame):
        Unframer().feed(stream)


@pytest.mark.parametrize(
    "name", ["..", "a/../b", "/a", "", "a//b", "./a", "a/", "a\0b", "\ud800", 3, "a/" * 2049 + "a"]
)
def test_a_name_that_leads_out_or_is_none_is_not_safe(name: object) -> None:
    assert not safe_name(name)


@pytest.mark.parametrize("name", ["a", "a/b.c", "é\udcff", "..a", "a b/\n"])
def test_a_name_in_normal_form_is_safe(name: str) -> None:
    assert safe_name(name)
