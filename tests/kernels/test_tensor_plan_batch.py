"""The batch evaluator of tensor_plan: equal to the scalar model to the last cycle, and its top k proven."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

WORKSPACE = Path(__file__).resolve().parents[2] / "kernels" / "tensor_plan"
BATCH_FILE = WORKSPACE / "batch.py"


def load_batch() -> ModuleType:
    """Under a name of its own, since `batch` may be anyone's; leaves the import path as it was."""
    path_before = sys.path.copy()
    spec = importlib.util.spec_from_file_location("tensor_plan_batch", BATCH_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path_before
    return module


batch = load_batch()
arrays, model, search = (sys.modules[f"tensor_plan_{part}"] for part in ("arrays", "model", "search"))
jitter, sha256, space = (sys.modules[f"tensor_plan_{part}"] for part in ("scores", "sha256", "space"))

Json = dict[str, Any]
MODES = tuple(model.CASES)
DOMAINS: dict[str, tuple[Any, ...]] = space.DOMAINS
ITERATION_2: Json = json.loads(
    (WORKSPACE / "fixtures" / "tensor_plan_iteration2_neighborhood_best.json").read_text()
)["plan"]

plans = st.fixed_dictionaries({knob: st.sampled_from(values) for knob, values in DOMAINS.items()})


def random_plans(count: int, seed: int) -> list[Json]:
    generator = np.random.default_rng(seed)
    columns = {knob: generator.integers(len(values), size=count) for knob, values in DOMAINS.items()}
    return [{knob: DOMAINS[knob][columns[knob][row]] for knob in DOMAINS} for row in range(count)]


def is_valid(plan: Json) -> bool:
    return not space.broken_rules(plan)


# Scores.


@given(st.lists(plans, min_size=1, max_size=40), st.sampled_from(MODES))
@settings(max_examples=30, deadline=None)
def test_batch_scores_equal_the_scalar_model(candidates: list[Json], mode: str) -> None:
    rows = batch.columns(candidates)
    reports = [model.suite_report(mode, plan) for plan in candidates]
    assert batch.scores(mode, rows).tolist() == [report["best_cycles"] for report in reports]
    assert batch.passed(mode, rows).tolist() == [report["status"] == "passed" for report in reports]


@pytest.mark.parametrize("mode", MODES)
def test_batch_scores_equal_the_scalar_model_on_many_plans(mode: str) -> None:
    candidates = random_plans(2500, seed=7)
    assert {is_valid(plan) for plan in candidates} == {True, False}
    scores = batch.scores(mode, batch.columns(candidates))
    assert scores.dtype == np.int64
    assert scores.tolist() == [model.best_cycles(mode, plan) for plan in candidates]


def test_chunks_do_not_change_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = batch.columns(random_plans(100, seed=3))
    whole = batch.scores("final", rows)
    monkeypatch.setattr(jitter, "CHUNK_ROWS", 7)
    assert batch.scores("final", rows).tolist() == whole.tolist()


def test_no_plans_have_no_scores() -> None:
    rows = batch.columns([])
    assert batch.scores("dev", rows).tolist() == []
    assert batch.passed("dev", rows).tolist() == []


def test_columns_are_domain_indices_with_defaults_filled_in() -> None:
    rows = batch.columns([{"block_n": 96}, {"accum": "tree"}])
    assert list(rows) == list(DOMAINS)
    assert rows["block_n"].tolist() == [4, 0]
    assert rows["accum"].tolist() == [0, 2]
    assert {column.dtype for column in rows.values()} == {np.dtype(np.uint8)}


def test_plans_come_back_from_their_columns() -> None:
    candidates = random_plans(50, seed=5)
    assert arrays.plans_of(batch.columns(candidates)) == candidates


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        ({"block_m": 50}, "plans[1]: block_m: 50 is not one of 16, 32, 48, 64, 96"),
        ({"block_m": 16.0}, "plans[1]: block_m: 16.0 is not one of 16, 32, 48, 64, 96"),
        ({"split_k": True}, "plans[1]: split_k: True is not one of 1, 2, 4"),
        ({"accum": []}, "plans[1]: accum: [] is not one of scalar, pairwise, tree"),
        ({"acum": "tree"}, "plans[1]: 'acum' is not a knob of this plan; did you mean accum?"),
    ],
)
def test_foreign_values_are_refused_with_their_place(plan: Json, fault: str) -> None:
    with pytest.raises(batch.PlanError) as refusal:
        batch.columns([{}, plan])
    assert str(refusal.value) == fault


# The hash.


def test_array_sha256_equals_hashlib() -> None:
    generator = np.random.default_rng(11)
    texts = [generator.bytes(length) for length in range(260)]
    letters = np.zeros((len(texts), 320), np.uint8)
    for row, text in enumerate(texts):
        letters[row, : len(text)] = np.frombuffer(text, np.uint8)
    words = sha256.first_words(letters, np.array([len(text) for text in texts]))
    expected = [int.from_bytes(hashlib.sha256(text).digest()[:4], "big") for text in texts]
    assert words.tolist() == expected


@given(st.lists(plans, min_size=1, max_size=10))
@settings(max_examples=20, deadline=None)
def test_assembled_texts_equal_the_json_that_the_model_hashes(candidates: list[Json]) -> None:
    letters, lengths = jitter.plan_texts(batch.columns(candidates))
    texts = [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]
    wholes = [json.dumps({"plan": plan, "seed": 5}, sort_keys=True) for plan in candidates]
    assert [f'{text}}}, "seed": 5}}' for text in texts] == wholes
    assert not any(row[length:].any() for row, length in zip(letters, lengths, strict=True))


# The best k.


def every_plan(domains: dict[str, list[Any]]) -> list[Json]:
    """The whole product, its last knob changing fastest."""
    listing: list[Json] = [{}]
    for knob in DOMAINS:
        values = domains.get(knob, [DOMAINS[knob][0]])
        listing = [plan | {knob: value} for plan in listing for value in values]
    return listing


def full_exact_run(mode: str, listing: list[Json]) -> list[tuple[int, Json]]:
    """Score and plan of all that pass, best first, in the order of the listing where scores are equal."""
    rows = batch.columns(listing)
    scored = zip(batch.scores(mode, rows).tolist(), batch.passed(mode, rows), listing, strict=True)
    return sorted(((score, plan) for score, passes, plan in scored if passes), key=lambda pair: pair[0])


# Holds invalid plans, plans over the tolerance of mode final, and in both modes equal scores.
SMALL_PROFILE: dict[str, list[Any]] = {knob: [value] for knob, value in ITERATION_2.items()} | {
    "block_m": [64, 48, 96],
    "block_n": [32, 96],
    "block_k": [64, 96],
    "num_warps": [2, 4, 6],
    "accum": ["scalar", "tree"],
    "softmax": ["online_renorm", "approx_poly"],
    "prefetch_distance": [2, 3, 4],
    "split_k": [1, 2, 4],
    "schedule": ["split_pipeline", "persistent"],
    "scratchpad_kb": [64, 96],
}


@pytest.mark.parametrize(("mode", "passing"), [("dev", 2700), ("final", 2160)])
def test_top_equals_a_full_exact_run_on_a_small_profile(mode: str, passing: int) -> None:
    listing = every_plan(SMALL_PROFILE)
    expected = full_exact_run(mode, listing)
    scores = [score for score, _ in expected]
    assert len(set(scores)) < len(scores) == passing < len(listing) == 5184
    for k in (1, 2, 7, 50, 700, len(expected), 100_000):
        best = batch.top(mode, SMALL_PROFILE, k)
        assert best.scores == tuple(scores[:k])
        assert list(best.plans) == [plan for _, plan in expected[:k]]
        assert best.total_raw == len(listing)
        assert best.total_valid == sum(map(is_valid, listing))
        assert best.evaluated_exactly >= min(k, len(expected))


def test_top_of_few_scores_few_plans_exactly() -> None:
    best = batch.top("dev", SMALL_PROFILE, 5)
    assert best.evaluated_exactly < 100 < best.looked_at < best.total_valid


sub_products = st.fixed_dictionaries(
    {
        knob: st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
        for knob, values in DOMAINS.items()
    }
).filter(lambda domains: np.prod([len(values) for values in domains.values()]) <= 2048)


@given(sub_products, st.integers(1, 30), st.sampled_from(MODES))
@settings(max_examples=15, deadline=None)
def test_top_equals_a_full_exact_run_on_any_product(domains: Json, k: int, mode: str) -> None:
    expected = full_exact_run(mode, every_plan(domains))[:k]
    best = batch.top(mode, domains, k)
    assert list(zip(best.scores, best.plans, strict=True)) == expected


@given(st.lists(plans, min_size=1, max_size=20), st.sets(st.sampled_from(list(DOMAINS)), max_size=18))
@settings(max_examples=30, deadline=None)
def test_a_bound_is_never_above_what_it_bounds(candidates: list[Json], open_knobs: set[str]) -> None:
    rows = batch.columns(candidates)
    settled = {knob: column for knob, column in rows.items() if knob not in open_knobs}
    outlook = arrays.Outlook({knob: np.unique(rows[knob]) for knob in open_knobs})
    for case in (*model.CASES["dev"], *model.CASES["final"]):
        bounds = outlook.base_cycles(case, settled)
        assert np.all(bounds <= arrays.NOTHING_OPEN.base_cycles(case, rows))
        assert np.all(outlook.may_pass(case, settled) | ~arrays.NOTHING_OPEN.may_pass(case, rows))


def test_top_is_empty_when_no_plan_passes() -> None:
    persistent_on_two_warps = {"schedule": ["persistent"], "num_warps": [2], "block_n": [32, 64]}
    best = batch.top("dev", persistent_on_two_warps, 3)
    assert (best.plans, best.scores, best.total_raw, best.total_valid) == ((), (), 2, 0)


@pytest.mark.parametrize(
    ("name", "raw", "valid"),
    [
        ("iteration3_dev_core", 2_764_800, 1_814_400),
        ("iteration3_layout_relaxed", 1_990_656, 1_990_656),
    ],
)
def test_bounded_profiles_have_their_counts_and_rank_iteration_2_first(
    name: str, raw: int, valid: int
) -> None:
    best = batch.top("dev", batch.profile(name), 3, ["final"])
    assert (best.total_raw, best.total_valid) == (raw, valid)
    assert best.plans[0] == ITERATION_2
    assert best.plans[1] == ITERATION_2 | {"scratchpad_kb": 128}
    assert best.plans[2] == ITERATION_2 | {"scratchpad_kb": 128, "epilogue": "fused_scale_mask"}
    assert best.scores == (262_005, 262_458, 262_788)
    assert best.other_scores["final"][0] == 1_495_982
    assert best.other_passed["final"] == (True, True, True)


@pytest.mark.parametrize("name", list(batch.PROFILES))
def test_ranking_by_final_finds_another_plan(name: str) -> None:
    best = batch.top("final", batch.profile(name), 1, ["dev"])
    changes = {"block_m": 64, "block_k": 96, "num_warps": 4, "softmax": "approx_poly"}
    assert best.plans[0] == ITERATION_2 | changes
    assert (best.scores[0], best.other_scores["dev"][0]) == (1_243_635, 384_642)


@pytest.mark.parametrize(("mode", "score"), [("dev", 262_005), ("final", 1_243_635)])
def test_the_profiles_hold_the_best_of_the_full_product(mode: str, score: int) -> None:
    best = batch.top(mode, {knob: list(values) for knob, values in DOMAINS.items()}, 1)
    assert best.total_valid == 89_579_520_000
    assert best.scores == (score,)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("best", {}, 1), "mode: 'best' is not one of dev, final"),
        (("dev", {}, 1, ["best"]), "mode: 'best' is not one of dev, final"),
        (("dev", {}, 0), "k: 0 is not between 1 and 100000"),
        (("dev", {"color": ["red"]}, 1), "domains: 'color' is not a knob; the knobs are block_m, "),
        (("dev", {"block_m": [16, 17]}, 1), "domains: block_m: 17 is not one of 16, 32, 48, 64, 96"),
        (("dev", {"block_m": []}, 1), "domains: block_m: needs at least one value, and each only once"),
        (("dev", {"block_m": [16, 16]}, 1), "domains: block_m: needs at least one value, and each only once"),
    ],
)
def test_top_refuses_what_it_cannot_answer(arguments: tuple[Any, ...], fault: str) -> None:
    with pytest.raises(batch.PlanError) as refusal:
        batch.top(*arguments)
    assert str(refusal.value).startswith(fault)


# As a process.


def run(*arguments: str, requests: str = "") -> subprocess.CompletedProcess[str]:
    """Isolated and from a foreign folder, as a caller starts a helper process."""
    command = [sys.executable, "-I", str(BATCH_FILE), *arguments]
    return subprocess.run(command, cwd=os.sep, input=requests, capture_output=True, text=True, timeout=60)


def test_command_line_prints_the_best_as_json() -> None:
    done = run(
        "--mode", "dev", "--profile", "iteration3_dev_core", "--top", "2", "--include", "final", "--json"
    )
    best = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert best["scores"] == [262_005, 262_458]
    assert best["other_scores"]["final"][0] == 1_495_982
    assert best["plans"][0] == ITERATION_2


def test_command_line_says_what_it_covered_and_refuses_a_silly_count() -> None:
    lines = run("--profile", "iteration3_layout_relaxed", "--top", "1").stdout.splitlines()
    assert lines[0].startswith("1,990,656 valid plans, ")
    assert lines[1].split()[:3] == ["1", "dev", "262,005"]
    refused = run("--top", "0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "batch.py: k: 0 is not between 1 and 100000\n"


def serve(*requests: object) -> list[Json]:
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    done = run("--serve", requests="\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_serve_answers_scores_top_and_profiles_in_order() -> None:
    over_tolerance = ITERATION_2 | {"softmax": "approx_poly", "accum": "scalar"}
    scored, ranked, named, profiles = serve(
        {"call": "scores", "mode": "final", "plans": [ITERATION_2, over_tolerance, {"block_n": 32}]},
        {"call": "top", "mode": "dev", "domains": SMALL_PROFILE, "k": 4, "include": ["final"]},
        {"call": "top", "mode": "dev", "profile": "iteration3_dev_core", "k": 1},
        {"call": "profiles"},
    )
    assert scored["scores"] == [1_495_982, model.best_cycles("final", over_tolerance), 33_975_173]
    assert scored["passed"] == [True, False, True]
    here = batch.top("dev", SMALL_PROFILE, 4, ["final"])
    assert ranked["scores"] == list(here.scores)
    assert ranked["plans"] == list(here.plans)
    assert ranked["other_scores"] == {"final": list(here.other_scores["final"])}
    assert named["scores"] == [262_005]
    assert profiles == batch.PROFILES


def test_serve_answers_bad_requests_with_a_sentence_and_goes_on() -> None:
    *errors, last = serve(
        "half a {",
        "[]",
        {},
        {"call": "dance"},
        {"call": "scores", "mode": "dev"},
        {"call": "scores", "mode": "best", "plans": []},
        {"call": "scores", "mode": "dev", "plans": [1]},
        {"call": "scores", "mode": "dev", "plans": [{"block_m": {}}]},
        {"call": "top", "mode": "dev", "domains": {"block_m": 16}, "k": 1},
        {"call": "top", "mode": "dev", "domains": {"block_m": [[]]}, "k": 1},
        {"call": "top", "mode": "dev", "domains": {}, "k": True},
        {"call": "top", "mode": "dev", "domains": {}, "k": 1, "include": [[]]},
        {"call": "top", "mode": "dev", "profile": "none", "k": 1},
        "[" * 100_000,
        {"call": "scores", "mode": "dev", "plans": [ITERATION_2]},
    )
    assert [list(answer) for answer in errors] == [["error"]] * 14
    assert errors[0]["error"].startswith("the request is not valid JSON: ")
    assert errors[3]["error"] == "call: 'dance' is not one of scores, top, profiles"
    assert errors[10]["error"] == "k: true is not of JSON type integer"
    assert last == {"scores": [262_005], "passed": [True]}
