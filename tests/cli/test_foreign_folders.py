"""Folders of somebody else, four files each, unchanged: init, run, sweep, verify, restore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.deck import Deck, interrupt, processes_with, wait_until

# A sum of milliseconds, lower is better; two cases in final, knobs in lists at the top of the file.
TOTAL_MS = {
    "benchmark.py": """
import argparse, json
import kernel

SHAPES = {"dev": [("small", 64)], "final": [("small", 64), ("large", 256)]}
TILES = [8, 16, 32]
UNROLLS = [1, 2, 4]


def run(mode):
    config = json.load(open("kernel_config.json"))
    if config["tile"] not in TILES or config["unroll"] not in UNROLLS:
        return {"status": "failed", "mode": mode, "errors": ["no such tile or unroll"], "total_ms": 0}
    cases = []
    for name, size in SHAPES[mode]:
        right = kernel.total(size) == size * (size - 1) // 2
        ms = size / config["tile"] + 2.0 / config["unroll"]
        cases.append({"name": name, "status": "passed" if right else "failed", "total_ms": ms})
    total = sum(case["total_ms"] for case in cases)
    status = "passed" if all(case["status"] == "passed" for case in cases) else "failed"
    return {"status": status, "mode": mode, "total_ms": total, "cases": cases}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["dev", "final"], default="dev")
    parser.add_argument("--json", action="store_true")
    result = run(parser.parse_args().mode)
    print(json.dumps(result))
    raise SystemExit(result["status"] != "passed")
""",
    "verifier.py": """
import argparse, json
import benchmark

parser = argparse.ArgumentParser()
parser.add_argument("--mode", choices=["dev", "final"], default="final")
parser.add_argument("--json", action="store_true")
result = benchmark.run(parser.parse_args().mode)
print(json.dumps({**result, "verified": result["status"] == "passed"}))
raise SystemExit(result["status"] != "passed")
""",
    "kernel.py": "def total(n):\n    return sum(range(n))\n",
    "kernel_config.json": '{"tile": 8, "unroll": 1}\n',
}

# Throughput, higher is better; one case, and a rule between two knobs.
TFLOPS = {
    "bench.py": """
import argparse, json
import gemm_kernel

BLOCKS = (16, 32, 64)
STAGES = (1, 2, 3)

def load():
    with open("plan.json") as file:
        plan = json.load(file)
    if plan["block"] not in BLOCKS:
        raise ValueError("block must be one of 16, 32, 64")
    if plan["stages"] not in STAGES:
        raise ValueError("stages must be one of 1, 2, 3")
    if plan["block"] == 64 and plan["stages"] == 3:
        raise ValueError("block 64 leaves no room for 3 stages")
    return plan

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["dev", "final"], default="dev")
    args = parser.parse_args()
    plan = load()
    right = gemm_kernel.multiply(3, 4) == 12
    tflops = 2.5 * plan["block"] ** 0.5 + plan["stages"]
    print("measuring ...")
    print(json.dumps({"status": "passed" if right else "failed", "tflops": tflops}, indent=1))
""",
    "verify.py": """
import argparse, json
import gemm_kernel

parser = argparse.ArgumentParser()
parser.add_argument("--mode", choices=["dev", "final"], default="final")
parser.parse_args()
right = all(gemm_kernel.multiply(a, b) == a * b for a in range(9) for b in range(9))
print(json.dumps({"status": "passed" if right else "failed", "verified": right}))
raise SystemExit(not right)
""",
    "gemm_kernel.py": "def multiply(a, b):\n    return a * b\n",
    "plan.json": '{"block": 16, "stages": 1}\n',
}

# A shell script as benchmark: one mode, no word about it in the result, a kernel that it runs.
SHELL = {
    "benchmark.sh": """
#!/bin/sh
# Prints the result as JSON.
chunk=$(sed -n 's/.*"chunk": *\\([0-9]*\\).*/\\1/p' config.json)
if [ "$(python3 kernel.py 6)" = 21 ]; then status=passed; else status=failed; fi
echo "{\\"status\\": \\"$status\\", \\"total_us\\": $((1000 / chunk + chunk))}"
[ "$status" = passed ]
""",
    "verifier.sh": """
#!/bin/sh
if [ "$(python3 kernel.py 4)" = 10 ] && [ "$(python3 kernel.py 10)" = 55 ]; then
  echo '{"status": "passed", "verified": true}'
else
  echo '{"status": "failed", "verified": false}'
  exit 1
fi
""",
    "kernel.py": "import sys\n\nprint(sum(range(int(sys.argv[1]) + 1)))\n",
    "config.json": '{"chunk": 4}\n',
}


def folder(root: Path, files: dict[str, str]) -> Deck:
    deck = Deck(root)
    for name, text in files.items():
        deck.write(name, text.lstrip("\n"))
    return deck


def unchanged(deck: Deck, files: dict[str, str], but: str) -> bool:
    return all(deck.read(name) == text.lstrip("\n") for name, text in files.items() if name != but)


def test_total_ms(tmp_path: Path) -> None:
    deck = folder(tmp_path / "sums", TOTAL_MS)
    before = deck.files()
    assert "total_ms" in deck.run("init", "--dry-run").out and deck.files() == before
    answer = deck.json("init")
    assert answer["outcome"] == "written" and deck.files().keys() - before.keys() == {"kerneldeck.toml"}
    assert deck.json("run")["score"] == 10
    swept = deck.json("sweep", "config", "--keep-best")
    assert swept["kept"] and swept["winner"]["config"] == {"tile": 32, "unroll": 4}
    assert deck.json("run", "--mode", "final")["score"] == 11
    deck.write("kernel_config.json", '{"tile": 16, "unroll": 4}\n')
    assert deck.json("verify", code=1)["outcome"] == "restored"
    deck.write("kernel.py", "def total(n):\n    return 0\n")
    wrong = deck.json("verify", code=1)
    assert wrong["outcome"] == "restored" and wrong["final"]["status"] == "incorrect"
    (deck.root / "kernel.py").unlink()
    assert deck.json("restore")["files"] == ["kernel.py"]
    assert json.loads(deck.read("kernel_config.json")) == {"tile": 32, "unroll": 4}
    assert unchanged(deck, TOTAL_MS, but="kernel_config.json")
    assert deck.seen()["cases"] == {"dev": ["small"], "final": ["small", "large"]}


def test_tflops(tmp_path: Path) -> None:
    deck = folder(tmp_path / "gemm", TFLOPS)
    deck.run("init")
    seen = deck.seen()
    assert (seen["objective"]["metric"], seen["objective"]["direction"]) == ("tflops", "higher")
    assert {knob["name"]: knob["values"] for knob in seen["space"]["knobs"]} == {
        "block": [16, 32, 64], "stages": [1, 2, 3]
    }  # fmt: skip
    assert deck.json("run")["score"] == pytest.approx(11)
    swept = deck.json("sweep", "config", "--keep-best")
    assert swept["winner"]["config"] == {"block": 64, "stages": 2} and swept["kept"]
    assert swept["gate"]["gain"] == pytest.approx(22 / 11 - 1)
    deck.write("plan.json", '{"block": 32, "stages": 2}\n')
    assert deck.json("verify", code=1)["outcome"] == "restored"
    deck.write("gemm_kernel.py", "def multiply(a, b):\n    return 12\n")
    assert deck.json("verify", code=1)["final"]["status"] == "incorrect", "only the verifier sees it"
    assert unchanged(deck, TFLOPS, but="plan.json")
    assert deck.json("rank")["rows"][0]["is_best"]


def test_a_shell_script(tmp_path: Path) -> None:
    deck = folder(tmp_path / "shell", SHELL)
    deck.run("init")
    seen = deck.seen()
    assert list(seen["modes"]) == ["final"] and seen["modes"]["final"]["benchmark"] == ["./benchmark.sh"]
    assert deck.json("run")["score"] == 254, "without any mode named"
    words = [word for chunk in (8, 32, 125) for word in ("--config", json.dumps({"chunk": chunk}))]
    swept = deck.json("sweep", "config", *words, "--keep-best")
    assert swept["kept"] and swept["winner"]["config"] == {"chunk": 32}
    assert deck.json("run")["score"] == 63
    deck.write("kernel.py", "print(21)\n")
    answer = deck.json("verify", code=1)
    assert answer["outcome"] == "restored" and answer["final"]["status"] == "incorrect"
    deck.write("config.json", '{"chunk": 1}\n')
    assert deck.json("restore")["outcome"] == "restored"
    assert json.loads(deck.read("config.json")) == {"chunk": 32}
    assert unchanged(deck, SHELL, but="config.json")


def test_init_never_overwrites_and_names_what_it_misses(tmp_path: Path) -> None:
    deck = folder(tmp_path / "sums", TOTAL_MS)
    deck.run("init")
    written = deck.read("kerneldeck.toml")
    assert "kerneldeck.toml" in deck.fault("init") and deck.read("kerneldeck.toml") == written
    empty = Deck(tmp_path / "empty")
    empty.root.mkdir()
    assert "is empty" in empty.fault("init")
    assert "does not exist" in empty.fault("init", "nowhere")
    assert "there is no template 'tensor_plann'" in empty.fault("init", "--template", "tensor_plann", "x")
    assert "did you mean tensor_plan?" in empty.fault("init", "--template", "tensor_plann", "x")
    assert list(empty.root.iterdir()) == []


def test_init_can_be_interrupted_while_it_runs_the_benchmark(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    deck = folder(
        tmp_path / "shell",
        {**SHELL, "benchmark.sh": f"#!/bin/sh\ntouch {reached}\nsleep 300\necho '{{\"status\": 1}}'\n"},
    )
    before = deck.files()
    command = deck.start("init")
    wait_until(reached.exists, "the benchmark's run")
    assert interrupt(command).code == 130
    assert processes_with("kerneldeck-init-") == [] and deck.files() == before


def test_init_in_a_folder_of_everything_copies_nothing(tmp_path: Path) -> None:
    deck = folder(tmp_path / "sums", TOTAL_MS)
    with (deck.root / "weights.bin").open("wb") as file:
        file.truncate(600_000_000)
    answer = deck.json("init", "--dry-run", env={"TMPDIR": "/nonexistent"})
    assert any("600 MB" in point for point in answer["open_points"])
    assert any("The benchmark was not run" in point for point in answer["open_points"])


def test_init_writes_nothing_while_no_direction_is_known(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        "import json\n"
        'n = json.load(open("conf.json"))["n"]\n'
        'print(json.dumps({"status": "passed", "value": n}))\n'
    )
    (tmp_path / "conf.json").write_text('{"n": 3}\n')
    deck = Deck(tmp_path)
    answer = deck.json("init", "--metric", "value", code=2)
    assert answer["outcome"] == "not_enough" and "--direction lower or higher" in " ".join(
        answer["open_points"]
    )
    assert not (tmp_path / "kerneldeck.toml").exists()
    deck.run("init", "--metric", "value", "--direction", "higher")
    assert deck.json("inspect")["objective"]["direction"] == "higher"
