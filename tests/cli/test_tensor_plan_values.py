"""The published check values of the tensor_plan model, through the command line, to the last cycle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.deck import Deck, kerneldeck

START = {
    "block_m": 16, "block_n": 32, "block_k": 32, "num_warps": 2, "vector_width": 4, "q_layout": "row_major",
    "k_layout": "row_major", "v_layout": "row_major", "o_layout": "row_major", "accum": "scalar",
    "softmax": "exact", "dma_stages": 1, "prefetch_distance": 0, "dma_burst": 32, "split_k": 1,
    "swizzle": "none", "schedule": "serial", "epilogue": "store_plain", "scratchpad_kb": 32,
}  # fmt: skip
ITERATION_2 = {
    "block_m": 48, "block_n": 96, "block_k": 64, "num_warps": 6, "vector_width": 16,
    "q_layout": "swizzled_mn", "k_layout": "swizzled_nk", "v_layout": "swizzled_kd", "o_layout": "streamed",
    "accum": "tree", "softmax": "online_renorm", "dma_stages": 3, "prefetch_distance": 3, "dma_burst": 128,
    "split_k": 1, "swizzle": "tensorcore", "schedule": "persistent", "epilogue": "fused_scale",
    "scratchpad_kb": 96,
}  # fmt: skip
ATTEMPT_1 = ITERATION_2 | {"num_warps": 4, "scratchpad_kb": 128, "epilogue": "fused_scale_mask"}
FOURTH = ITERATION_2 | {"block_m": 64, "block_k": 96, "num_warps": 4, "softmax": "approx_poly"}
CASES = {
    "dev": [251_571, 262_005],
    "final": [75_478, 251_571, 382_750, 1_495_982, 207_825],
}


@pytest.fixture(scope="module")
def tensor_plan(tmp_path_factory: pytest.TempPathFactory) -> Deck:
    root = tmp_path_factory.mktemp("tensor") / "plan"
    assert kerneldeck("init", "--template", "tensor_plan", str(root), cwd=root.parent).code == 0
    return Deck(root)


@pytest.mark.parametrize(
    ("plan", "dev", "final"),
    [
        (START, 8_348_345, 33_975_173),
        (ATTEMPT_1, 277_305, 1_526_080),
        (ITERATION_2, 262_005, 1_495_982),
        (FOURTH, 384_642, 1_243_635),
    ],
    ids=["start", "attempt-1", "iteration-2", "fourth"],
)
def test_the_check_values_are_exact(tensor_plan: Deck, plan: dict[str, object], dev: int, final: int) -> None:
    tensor_plan.write("kernel_plan.json", json.dumps(plan))
    for mode, cycles in (("dev", dev), ("final", final)):
        answer = tensor_plan.json("run", "--mode", mode)
        assert answer["score"] == answer["result"]["best_cycles"] == cycles
        if plan is ITERATION_2:
            assert [case["best_cycles"] for case in answer["result"]["cases"]] == CASES[mode]


def test_the_start_plan_is_what_init_lays_out(tmp_path: Path) -> None:
    kerneldeck("init", "--template", "tensor_plan", "plan", cwd=tmp_path)
    assert json.loads((tmp_path / "plan/kernel_plan.json").read_text()) == START


def test_the_order_of_the_keys_does_not_matter(tensor_plan: Deck) -> None:
    backwards = dict(reversed(ITERATION_2.items()))
    tensor_plan.write("kernel_plan.json", json.dumps(backwards))
    assert tensor_plan.json("run")["score"] == 262_005


def test_an_invalid_plan_is_invalid_with_its_errors(tensor_plan: Deck) -> None:
    tensor_plan.write("kernel_plan.json", json.dumps(START | {"block_k": 128}))
    answer = tensor_plan.json("run", code=1)
    assert answer["status"] == "invalid" and answer["score"] is None
    assert "block_k" in answer["reason"]
