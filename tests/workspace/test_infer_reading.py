"""What inference reads in Python source: domains, constraints, flags, scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.workspace.config import Knob
from core.workspace.infer import infer
from tests.workspace.test_infer import CopyProbe, config_of, found, lay, opened

START = {"tile": 16, "warps": 4, "order": "ij"}
PRINTS = '\nimport json\nprint(json.dumps({"status": "passed", "best_us": 1.0}))\n'


def knobs_of(
    source: str, tmp_path: Path, start: dict[str, object] | None = None
) -> dict[str, tuple[object, ...]]:
    lay(tmp_path, {"benchmark.py": source + PRINTS, "config.json": json.dumps(start or START)})
    return {knob.name: knob.values for knob in config_of(infer(tmp_path, None)).knobs}


@pytest.mark.parametrize(
    "source",
    [
        'DOMAINS = {"tile": [8, 16, 32]}',
        'space = dict(tile=(8, 16, 32), seed=7)',
        'TILES = [8, 16, 32]\nDOMAINS = {"tile": TILES}',
        'DOMAINS = {"tile": [1 << n for n in range(3, 6)]}',
        'DOMAINS = {"tile": tuple(sorted({32, 8, 16}))}',
        'DOMAINS = {"tile": {"values": [8, 16, 32], "unit": "rows"}}',
        'DOMAINS = {"tile": {8: 0.9, 16: 1.0, 32: 1.1}}',
        'VALID_TILES = {8, 16, 32}',
        'TILE_CHOICES: tuple[int, ...] = (8, 16, 32)',
        'KNOBS = [Knob("tile", [8, 16, 32]), Knob("depth", [1, 2])]',
        'PAIRS = [("tile", (8, 16, 32))]',
        'check_member(config, "tile", (8, 16, 32))',
        'assert config["tile"] in (8, 16, 32), "tile"',
        'if config["tile"] not in [8, 16, 32]: raise ValueError("tile")',
        'if not (config.get("tile", 16) in {8, 16, 32}): errors.append("tile")',
        'if "tile" in config and int(config["tile"]) not in (8, 16, 32): sys.exit("tile")',
        'if args.tile not in (8, 16, 32): parser.error("tile")',
        'def check(tile):\n    if tile not in (8, 16, 32):\n        return "tile"\n    return ""',
        'def valid(config):\n    return config["tile"] in (8, 16, 32) and config["warps"] > 0',
        'OK = (8, 16, 32)\ndef f(c):\n    tile = c["tile"]\n    if tile not in OK:\n        raise ValueError',
        'def f(tile):\n    if tile == 8: pass\n    elif tile in (16, 32): pass\n    else: raise ValueError',
        'def f(tile):\n    if tile < 8 or tile & (tile - 1) or tile > 32:\n        raise ValueError',
    ],
)  # fmt: skip
def test_a_domain_is_found_however_it_is_written(source: str, tmp_path: Path) -> None:
    assert knobs_of(source, tmp_path) == {"tile": (8, 16, 32)}


def test_limits_of_whole_numbers_make_a_range(tmp_path: Path) -> None:
    source = 'if c["warps"] < 1: raise ValueError\nassert c["warps"] <= 5\nassert 0 <= c["tile"] <= 9999'
    assert knobs_of(source, tmp_path) == {"warps": (1, 2, 3, 4, 5)}


@pytest.mark.parametrize(
    "source",
    [
        'DEFAULTS = {"tile": 16, "warps": 4}',
        'if config["tile"] in (8, 16): fast = True',
        'if config["tile"] == 8: cost = 0.5',
        'if config["tile"] not in (8, 16): cost.append(3)',
        'def cost(config):\n    if config["tile"] not in (8, 16):\n        return False\n    return True',
        'x = config.get("tile", [8, 16])',
        'DOMAINS = {"tile": ["a", "b"]}',
        'DOMAINS = {"tile": load_tiles()}',
    ],
)
def test_what_is_no_domain_makes_no_knob(source: str, tmp_path: Path) -> None:
    assert knobs_of(source, tmp_path) == {}


def test_a_domain_from_an_imported_module_counts_and_the_module_is_protected(tmp_path: Path) -> None:
    source = "import spec.space as space\nfrom more import LIMITS as L\nD = {'tile': space.TILES, 'warps': L}"
    lay(tmp_path, {
        "benchmark.py": source + PRINTS,
        "spec/__init__.py": "",
        "spec/space.py": "TILES = [8, 16]\n",
        "more.py": "BASE = 2\nLIMITS = (BASE, BASE * 2)\n",
        "config.json": json.dumps(START),
    })  # fmt: skip
    config = config_of(infer(tmp_path, None))
    assert config.knobs == (Knob("tile", (8, 16)), Knob("warps", (2, 4)))
    assert set(config.files.protected) == {"benchmark.py", "spec/space.py", "more.py"}


def test_a_table_may_name_knobs_that_the_config_leaves_at_their_defaults(tmp_path: Path) -> None:
    table = 'DOMAINS = {"tile": [8, 16], "warps": [4, 8], "order": ["ij", "ji"], "depth": [1, 2]}'
    assert list(knobs_of(table, tmp_path)) == ["tile", "warps", "order", "depth"]


def test_a_start_value_outside_its_domain_is_pointed_out(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": 'D = {"tile": [8, 32]}' + PRINTS, "config.json": json.dumps(START)})
    assert "16, which is not among the values of benchmark.py:1" in opened(infer(tmp_path, None), "tile:")


def test_values_that_no_knob_can_have_stay_out(tmp_path: Path) -> None:
    start = {"tile": 16, "grid": [1, 2], "hint": None, "a.b": 3, "deep": {"er": {"on": True}}}
    lay(tmp_path, {"benchmark.py": 'D = {"tile": [8, 16]}' + PRINTS, "config.json": json.dumps(start)})
    inference = infer(tmp_path, None)
    assert config_of(inference).knobs == (Knob("tile", (8, 16)), Knob("deep.er.on", (True, False)))
    assert all(opened(inference, f"{name}: no number") for name in ("grid", "hint", "a.b"))


@pytest.mark.parametrize(
    ("source", "constraint"),
    [
        ('if c["tile"] > 4 * c["warps"]: raise ValueError', "tile <= 4 * warps"),
        ('if c["order"] == "ji" and c["warps"] < 4: errors.append("x")', "order != 'ji' or warps >= 4"),
        (
            'if c["order"] == "ji":\n    if c["warps"] < 4:\n        raise ValueError',
            "order != 'ji' or warps >= 4",
        ),
        ('assert c["tile"] % (4 * c["warps"]) == 0', "tile % (4 * warps) == 0"),
        ('require(c["tile"] <= 4 * c["warps"], "too large")', "tile <= 4 * warps"),
        ('RULES = ["tile <= 4 * warps", "anything else"]', "tile <= 4 * warps"),
        ('LIMIT = 128\nif c["tile"] * c["warps"] > LIMIT: sys.exit(2)', "tile * warps <= 128"),
        ('if not (c["order"] == "ij" or c["tile"] < 32): problems += ["x"]', "order == 'ij' or tile < 32"),
        (
            'def check(c):\n    area = c["tile"] * c["warps"]\n    if area > 128:\n        yield "area"',
            "tile * warps <= 128",
        ),
        ('def check_plan(c):\n    if c["tile"] > 4 * c["warps"]:\n        return False', "tile <= 4 * warps"),
        ('def is_valid(c):\n    return c["tile"] <= 4 * c["warps"]', "tile <= 4 * warps"),
        ('if max(c["tile"], c["warps"]) > 16: raise ValueError', "max(tile, warps) <= 16"),
    ],
)
def test_a_condition_answered_with_an_error_becomes_a_constraint(
    source: str, constraint: str, tmp_path: Path
) -> None:
    domains = 'DOMAINS = {"tile": [8, 16, 32], "warps": [2, 4, 8], "order": ["ij", "ji"]}\n'
    lay(tmp_path, {"benchmark.py": domains + source + PRINTS, "config.json": json.dumps(START)})
    assert config_of(infer(tmp_path, None)).constraints == (constraint,)


@pytest.mark.parametrize(
    "source",
    [
        'if c["tile"] > 4 * c["warps"]: penalty += 3.0',
        'if c["tile"] > 4 * case["dim"]: raise ValueError',
        'if c["tile"] > rows: raise ValueError',
        'if rows > 3:\n    if c["tile"] > 4 * c["warps"]:\n        raise ValueError',
        'assert c["tile"] <= 4096',
        'def persistent_allowed(c):\n    return c["warps"] >= 4',
        'def check_tma(c):\n    if c["warps"] < 4:\n        return False',
        'error = 0.1\nif c["tile"] > 4 * c["warps"]: error += 0.2',
        'if case["tile"] > 4 * case["warps"]: raise ValueError',
    ],
)
def test_what_is_no_constraint_makes_none(source: str, tmp_path: Path) -> None:
    domains = 'DOMAINS = {"tile": [8, 16, 32], "warps": [2, 4, 8], "order": ["ij", "ji"]}\n'
    lay(tmp_path, {"benchmark.py": domains + source + PRINTS, "config.json": json.dumps(START)})
    assert config_of(infer(tmp_path, None)).constraints == ()


def test_a_constraint_that_the_config_itself_breaks_is_left_out_and_said(tmp_path: Path) -> None:
    source = 'D = {"tile": [8, 16], "warps": [2, 4]}\nif c["tile"] > 2 * c["warps"]: raise ValueError'
    lay(tmp_path, {"benchmark.py": source + PRINTS, "config.json": json.dumps(START)})
    inference = infer(tmp_path, None)
    assert config_of(inference).constraints == ()
    assert "benchmark.py:2: tile <= 2 * warps" in opened(inference, "broken by the config")


LISTS = """
import json, sys
if "--list-valid" in sys.argv:
    print(json.dumps({listing}))
else:
    print(json.dumps({{"status": "passed", "best_us": 1.5}}))
"""


@pytest.mark.parametrize(
    "listing",
    [
        {"knobs": {"tile": [8, 16], "warps": [2, 4, 8]}, "constraints": ["tile <= 4 * warps"]},
        {"space": {"domains": {"tile": {"values": [8, 16]}, "warps": {"choices": [2, 4, 8]}},
                   "rules": [{"name": "area", "expression": "tile <= 4 * warps"}]}},
        {"knobs": [{"name": "tile", "values": [8, 16]}, {"name": "warps", "values": [2, 4, 8]}],
         "constraints": [{"expr": "tile <= 4 * warps", "why": "registers"}]},
    ],
)  # fmt: skip
def test_what_the_program_lists_goes_before_its_source(listing: object, tmp_path: Path) -> None:
    narrower = 'D = {"tile": [1, 16], "warps": [4, 5]}'
    lay(
        tmp_path, {"benchmark.py": narrower + LISTS.format(listing=listing), "config.json": json.dumps(START)}
    )
    config = config_of(infer(tmp_path, CopyProbe(tmp_path)))
    assert config.knobs == (Knob("tile", (8, 16)), Knob("warps", (2, 4, 8)))
    assert config.constraints == ("tile <= 4 * warps",)


def test_a_json_file_that_the_benchmark_reads_may_say_the_space(tmp_path: Path) -> None:
    lay(tmp_path, {
        "bench/benchmark.py": "SPACE = open('../space.json')" + PRINTS,
        "space.json": '{"tile": [8, 16], "warps": [4, 8], "modes": ["a"], "rules": ["tile <= 2 * warps"]}',
        "config.json": '{"tile": 16, "warps": 8}',
    })  # fmt: skip
    config = config_of(infer(tmp_path, None))
    assert config.knobs == (Knob("tile", (8, 16)), Knob("warps", (4, 8)))
    assert config.constraints == ("tile <= 2 * warps",)
    assert config.files.protected == ("bench/benchmark.py", "space.json")


def test_a_listed_constraint_in_prose_is_handed_to_the_person(tmp_path: Path) -> None:
    listing = {"knobs": {"tile": [8, 16]}, "constraints": ["tile must fit the registers"]}
    lay(tmp_path, {"benchmark.py": LISTS.format(listing=listing), "config.json": json.dumps(START)})
    inference = infer(tmp_path, CopyProbe(tmp_path))
    assert config_of(inference).constraints == ()
    assert opened(inference, "tile must fit the registers")


@pytest.mark.parametrize(
    ("result", "metric", "direction", "aggregate"),
    [
        ({"best_us": 3.0, "score": 3.0, "median_us": 3.5, "target_best_us": 2}, "best_us", "lower", "single"),
        ({"score": 12.5}, "score", "lower", "single"),
        ({"score": 12.5, "higher_is_better": True}, "score", "higher", "single"),
        ({"score": 12.5, "direction": "higher"}, "score", "higher", "single"),
        ({"time": 0.5, "iterations": 10, "seed": 3, "elapsed_s": 9.0}, "time", "lower", "single"),
        ({"throughput": 5.0, "rows": 4}, "throughput", "higher", "single"),
        ({"gb_per_s": 5.0, "max_abs_error": 1e-5}, "gb_per_s", "higher", "single"),
        ({"us_per_call": 5.0}, "us_per_call", "lower", "single"),
        ({"speedup": 1.5, "baseline_ms": 3.0}, "speedup", "higher", "single"),
        ({"metrics": {"total_ms": 4.0}}, "metrics.total_ms", "lower", "single"),
        ({"best_us": 9.0, "cases": [{"best_us": 4.0}, {"best_us": 5.0}]}, "best_us", "lower", "sum"),
        ({"best_us": 5.0, "cases": [{"best_us": 4.0}, {"best_us": 5.0}]}, "best_us", "lower", "max"),
        ({"total_ms": 9.0, "cases": [{"n": 1, "ms": 4.0}, {"n": 2, "ms": 5.0}]}, "total_ms", "lower", "sum"),
        ({"tflops": 6.0, "cases": [{"tflops": 4.0}, {"tflops": 9.0}]}, "tflops", "higher", "geomean"),
    ],
)  # fmt: skip
def test_the_score_in_a_result(
    result: dict[str, object], metric: str, direction: str, aggregate: str, tmp_path: Path
) -> None:
    source = f"import json\nRESULT = json.loads({json.dumps(json.dumps(result))!r})\nprint(RESULT)"
    lay(
        tmp_path,
        {"bench.sh": f"#!/bin/sh\necho '{json.dumps({'status': 'passed', **result})}'\n", "kernel.c": source},
    )
    objective = config_of(infer(tmp_path, CopyProbe(tmp_path))).objective
    assert (objective.metric, objective.direction, objective.aggregate) == (metric, direction, aggregate)


@pytest.mark.parametrize(
    ("expression", "aggregate"),
    [
        ("sum(case['best_us'] for case in cases)", "sum"),
        ("round(math.fsum(c['best_us'] for c in cases), 3)", "sum"),
        ("max(cases, key=lambda c: c['best_us'])['best_us']", "max"),
        ("statistics.mean([c['best_us'] for c in cases])", "mean"),
        ("sum(c['best_us'] for c in cases) / len(cases)", "mean"),
        ("math.exp(sum(math.log(c['best_us']) for c in cases) / len(cases))", "geomean"),
        ("combine(cases)", "max"),
        ("sum(c['best_us'] for c in cases) if cases else float('inf')", "sum"),
        ("worst", "max"),
        ("added", "sum"),
    ],
)
def test_the_aggregate_in_the_source(expression: str, aggregate: str, tmp_path: Path) -> None:
    source = f"""
import json, math, statistics
def combine(rows):
    return max(row["best_us"] for row in rows)
def main():
    cases = []
    added = 0
    for name in "ab":
        case = {{"name": name, "best_us": 1.0}}
        added += case["best_us"]
        cases.append(case)
    worst = max(case["best_us"] for case in cases)
    print(json.dumps({{"status": "passed", "best_us": {expression}, "cases": cases}}))
if __name__ == "__main__":
    main()
"""
    lay(tmp_path, {"benchmark.py": source, "config.json": json.dumps(START)})
    inference = infer(tmp_path, None)
    assert config_of(inference).objective.aggregate == aggregate
    assert aggregate in found(inference, "aggregate")


@pytest.mark.parametrize(
    ("declared", "dev", "final"),
    [
        ('add_argument("--mode", choices=["dev", "final", "all"])', ["--mode", "dev"], ["--mode", "final"]),
        ('add_argument("--suite", choices=("quick", "full"))', ["--suite", "quick"], ["--suite", "full"]),
        ('add_argument("mode", choices=["dev", "final"])', ["dev"], ["final"]),
        ('add_argument("--quick", action="store_true")', ["--quick"], []),
        ('add_argument("--full", action="store_true")', [], ["--full"]),
        ('add_argument("--plan", required=True)', None, ["--plan", "config.json"]),
        ('add_argument("config")', None, ["config.json"]),
        ('add_argument("--json", action="store_true")', None, ["--json"]),
        ('add_argument("--json", metavar="FILE")', None, []),
        ('add_argument("-v", "--verbose", action="store_true")', None, []),
    ],
)
def test_flags_become_commands(
    declared: str, dev: list[str] | None, final: list[str], tmp_path: Path
) -> None:
    source = f"import argparse\nparser = argparse.ArgumentParser()\nparser.{declared}\n"
    lay(tmp_path, {"benchmark.py": source + PRINTS, "config.json": json.dumps(START)})
    modes = config_of(infer(tmp_path, None)).modes
    commands = {name: list(mode.benchmark[2:]) for name, mode in modes.items()}
    names = list(commands)
    assert commands[names[-1]] == final
    assert (commands[names[0]] if len(names) > 1 else None) == dev


def test_a_flag_that_must_be_given_and_is_not_understood_is_said(tmp_path: Path) -> None:
    source = 'import argparse\np = argparse.ArgumentParser()\np.add_argument("--device", required=True)\n'
    lay(tmp_path, {"benchmark.py": source + PRINTS, "config.json": json.dumps(START)})
    assert "requires --device" in opened(infer(tmp_path, None), "benchmark.py:3")


def test_click_options_count(tmp_path: Path) -> None:
    source = """
import click, json
@click.command()
@click.option("--mode", type=click.Choice(["dev", "final"]))
@click.option("--json", "as_json", is_flag=True)
@click.option("--repeats", default=5)
def main(mode, as_json, repeats):
    print(json.dumps({"status": "passed", "best_us": 1.0}))
if __name__ == "__main__":
    main()
"""
    config = config_of(infer(lay(tmp_path, {"benchmark.py": source, "config.json": "{}"}), None))
    assert config.modes["dev"].benchmark[2:] == ("--json", "--mode", "dev")
    assert config.options.repeats == "--repeats"


def test_a_repeats_flag_that_the_verifier_lacks_is_left_out(tmp_path: Path) -> None:
    declared = "import argparse\nparser = argparse.ArgumentParser()\n"
    lay(tmp_path, {
        "benchmark.py": declared + "parser.add_argument('--repeats', type=int)\n" + PRINTS,
        "verifier.py": declared + "parser.add_argument('--json', action='store_true')\n" + PRINTS,
        "config.json": json.dumps(START),
    })  # fmt: skip
    assert config_of(infer(tmp_path, None)).options.repeats == ""


@pytest.mark.parametrize(
    ("line", "deterministic"),
    [
        ("import hashlib", True),
        ("import time", False),
        ("import numpy.random", False),
        ("import torch", False),
    ],
)
def test_only_a_program_without_clock_and_chance_is_deterministic(
    line: str, deterministic: bool, tmp_path: Path
) -> None:
    lay(tmp_path, {"benchmark.py": line + PRINTS, "config.json": json.dumps(START)})
    assert config_of(infer(tmp_path, None)).objective.deterministic is deterministic
