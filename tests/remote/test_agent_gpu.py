"""What stands in for nvidia-smi here answers as cards and drivers do, and as nothing should."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh.remote_trials import GpuLook
from core.words import JsonObject
from tests.remote.agents import agent, run

UUID = "GPU-5e4c7b1a-0000-1111-2222-33334444555{}"
ROW = "{}, NVIDIA H200, " + UUID + ", 550.90.07, 143771, 4, 34, 77.41, 700.00, 1980, 3201, 1980, 0, 0x{:016x}"
EIGHT = "\n".join(ROW.format(number, number, 1) for number in range(8))
Smi = Callable[[str, str], str]


@pytest.fixture
def smi(tmp_path: Path) -> Smi:
    """`smi(cards, processes)`: a program that prints one text for each query."""

    def made(cards: str, processes: str = "") -> str:
        (tmp_path / "cards").write_text(cards)
        (tmp_path / "processes").write_text(processes)
        return script(
            tmp_path, f'case "$1" in *gpu=*) cat {tmp_path}/cards;; *) cat {tmp_path}/processes;; esac'
        )

    return made


def script(folder: Path, body: str) -> str:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def checked(tmp_path: Path, program: str, deadline_s: float = 10.0) -> JsonObject:
    found: list[JsonObject] = []

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            fields = {"smi": program, "deadline_s": deadline_s, "gpu": ""}
            asked = asyncio.create_task(there.link.request("gpus", fields, 30))
            await there.link.request("ping", {}, 5)
            found.append(await asked)

    run(main())
    return found[0]


def test_eight_cards_and_who_uses_them(tmp_path: Path, smi: Smi) -> None:
    processes = f"{UUID.format(3)}, 4711, 38012, python3, with, commas\n[Not Found], x, y, z\n"
    answer = checked(tmp_path, smi(EIGHT, processes))
    assert [card["index"] for card in answer["gpus"]] == [str(number) for number in range(8)]
    assert answer["gpus"][7] == {
        "index": "7", "name": "NVIDIA H200", "uuid": UUID.format(7), "driver": "550.90.07",
        "memory_total_mib": 143771.0, "memory_used_mib": 4.0, "temperature_c": 34.0, "power_w": 77.41,
        "power_limit_w": 700.0, "sm_clock_mhz": 1980.0, "memory_clock_mhz": 3201.0,
        "most_sm_clock_mhz": 1980.0, "utilization_percent": 0.0, "throttle_reasons": ["idle"],
    }  # fmt: skip
    assert answer["processes"] == [
        {"gpu": UUID.format(3), "pid": 4711, "name": "python3, with, commas", "memory_mib": 38012.0}
    ]
    assert answer["trouble"] is None


def test_a_throttled_card_says_why(tmp_path: Path, smi: Smi) -> None:
    answer = checked(tmp_path, smi(ROW.format(0, 0, 0x4 | 0x20 | 0x40), ""))
    assert answer["gpus"][0]["throttle_reasons"] == ["power cap", "heat (software)", "heat (hardware)"]


def test_values_that_a_card_does_not_tell_are_none(tmp_path: Path, smi: Smi) -> None:
    answer = checked(
        tmp_path, smi(ROW.format(0, 0, 0).replace("77.41", "[N/A]").replace("0x00", "[N/A]"), "")
    )
    assert answer["gpus"][0]["power_w"] is None
    assert answer["gpus"][0]["throttle_reasons"] is None


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("exec sleep 600", "did not answer within 0.3 s"),
        ("trap '' TERM; sleep 600 & wait", "did not answer within 0.3 s"),
        ("exec yes", "did not answer within 0.3 s"),
        (
            "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18",
            "ended with 18: Failed to",
        ),
        ("echo No devices were found", "lists no GPU: No devices were found"),
        ("head -c 100000 /dev/urandom", "lists no GPU: "),
        ("exit 0", "lists no GPU: it says nothing"),
    ],
)
def test_what_hangs_fails_or_babbles_is_told_in_time(tmp_path: Path, body: str, sentence: str) -> None:
    trouble = checked(tmp_path, script(tmp_path, body), 0.3)["trouble"]
    assert trouble["stage"] == "gpu"
    assert sentence in trouble["sentence"]


def test_a_machine_without_the_program_says_so(tmp_path: Path) -> None:
    trouble = checked(tmp_path, "/no/nvidia-smi")["trouble"]
    assert trouble["sentence"] == "/no/nvidia-smi cannot be run there: No such file or directory"


def test_lines_that_make_no_sense_are_counted_beside_those_that_do(tmp_path: Path, smi: Smi) -> None:
    answer = checked(tmp_path, smi(f"warning: a card fell off\n{EIGHT}\n\x00\x01,,,\n", ""))
    assert (len(answer["gpus"]), answer["unreadable"]) == (8, 2)


def test_the_facts_name_processor_system_toolchain_and_cards(tmp_path: Path, smi: Smi) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            fields = {"env": {}, "path_first": "", "smi": smi(EIGHT, ""), "deadline_s": 10}
            facts = await there.link.request("facts", fields, 30)
            assert facts["system"] == "Linux x86_64"
            assert facts["cpu"] and facts["toolchain"].startswith("python 3.")
            named = {key: facts["gpus"][1][key] for key in ("index", "name", "uuid", "driver")}
            assert named == {
                "index": "1", "name": "NVIDIA H200", "uuid": UUID.format(1), "driver": "550.90.07",
            }  # fmt: skip

    run(main())


def test_who_computes_before_and_after_a_trial_is_told_with_it(tmp_path: Path, smi: Smi) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            program = smi(EIGHT, f"{UUID.format(0)}, 4711, 38012, python3\n")
            look = GpuLook(UUID.format(0), program)
            collected = await there.trials.run(there.trial("true", look=look), tmp_path / "1")
            assert collected.ended.clean
            for when in ("before", "after"):
                found = collected.outcome["gpu"][when]
                assert [each["pid"] for each in found["processes"]] == [4711]
                assert found["card"] == {
                    "temperature_c": 34.0, "power_w": 77.41, "sm_clock_mhz": 1980.0,
                    "memory_clock_mhz": 3201.0, "throttle_reasons": ["idle"],
                }  # fmt: skip
                assert found["unknown"] == ""

    run(main())


def test_a_card_in_use_is_refused_when_it_is_to_be_free(tmp_path: Path, smi: Smi) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            program = smi(EIGHT, f"{UUID.format(0)}, 4711, 38012, python3\n")
            look = GpuLook(UUID.format(0), program, refuse_busy=True)
            collected = await there.trials.run(there.trial("true", look=look), tmp_path / "1")
            with pytest.raises(
                TargetFault, match=r"is in use by process 4711 \(python3, 38,012 MiB\)"
            ) as caught:
                _ = collected.ended
            assert caught.value.stage == "gpu"

    run(main())


def test_a_hung_program_delays_a_trial_by_its_deadline_only(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            look = GpuLook(UUID.format(0), script(tmp_path, "exec sleep 600"), 0.1, refuse_busy=True)
            collected = await there.trials.run(there.trial("true", look=look), tmp_path / "1")
            assert collected.ended.clean
            assert "did not answer" in collected.outcome["gpu"]["before"]["unknown"]

    run(main())
