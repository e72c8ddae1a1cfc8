"""`kerneldeck sweep config`: what it runs, finds, keeps and leaves alone."""

from __future__ import annotations

import json

from tests.cli.deck import CONFIG_TOML, Deck, wait_until


def test_a_sweep_finds_the_winner_and_leaves_the_files_alone(knobbed: Deck) -> None:
    before = knobbed.files()
    done = knobbed.run("sweep", "config")
    assert knobbed.files() == before
    assert "8 configurations, all valid ones of 8 combinations" in done.out
    assert "screened: 8 ok" in done.out
    assert "winner:" in done.out and "block=4 warps=1" in done.out
    (applying,) = [line.strip() for line in done.out.splitlines() if "kerneldeck apply" in line]
    assert knobbed.json(*applying.split()[1:])["outcome"] == "applied", "the line that it shows works"
    assert json.loads(knobbed.read("config.json")) == {"block": 4, "warps": 1}


def test_a_winner_is_kept_and_written_when_asked_to(knobbed: Deck) -> None:
    kernel = knobbed.read("kernel.sh")
    answer = knobbed.json("sweep", "config", "--keep-best", "--seed", "5")
    assert answer["kept"] and answer["winner"]["config"] == {"block": 4, "warps": 1}
    assert answer["gate"]["verdict"] == "faster" and answer["gate"]["accepted"]
    assert answer["baseline"]["outcome"] == "first_best"
    assert json.loads(knobbed.read("config.json")) == {"block": 4, "warps": 1}
    assert knobbed.read("kernel.sh") == kernel
    best = knobbed.seen()["best"]
    assert best["checkpoint"] == answer["winner"]["candidate"] and best["score"] == 101
    again = knobbed.json("sweep", "config", "--keep-best")
    assert again["winner"] is None and again["baseline"] is None


def test_only_what_was_named_is_run(knobbed: Deck) -> None:
    listed = knobbed.json(
        "sweep", "config", "--config", '{"block": 4}', "--config", '{"block": 8, "warps": 2}'
    )
    assert {json.dumps(row["config"]) for row in listed["leaders"]} == {
        "{}", '{"block": 4}', '{"block": 8, "warps": 2}'
    }  # fmt: skip
    crossed = knobbed.json("sweep", "config", "--set", "block=2,4", "--dry-run")
    assert crossed["configs"] == [{"block": 2}, {"block": 4}]
    asked = {"knobs": {"block": [8], "warps": [1, 2]}, "dry_run": True}
    called = knobbed.run("call", "sweep_kernel_config", json.dumps(asked)).answer
    assert called["configs"] == [{"block": 8, "warps": 1}, {"block": 8, "warps": 2}]


def test_the_published_knobs_have_flags_of_their_own(knobbed: Deck) -> None:
    knobbed.write("kerneldeck.toml", CONFIG_TOML.replace("warps =", "num_warps ="))
    dry = knobbed.json("sweep", "config", "--num-warps", "1,2", "--set", "block=4", "--dry-run")
    assert dry["configs"] == [{"block": 4, "num_warps": 1}, {"block": 4, "num_warps": 2}]


def test_a_screen_in_dev_does_not_decide(knobbed: Deck) -> None:
    """In dev block 8 looks best; the gate asks final, where it is the worst."""
    knobbed.kernel('[ "$mode$block" = dev8 ] && score=1')
    before = knobbed.read("config.json")
    answer = knobbed.json("sweep", "config", "--keep-best", "--finalists", "1")
    assert answer["leaders"][0]["config"]["block"] == 8
    assert answer["winner"] is None and answer["reason"] == "no candidate is better than the best"
    assert answer["confirmations"][0]["verdict"] == "slower"
    assert knobbed.read("config.json") == before


def test_a_sweep_measures_against_the_best_not_against_what_lies_there(knobbed: Deck) -> None:
    knobbed.config(block=4, warps=1)
    knobbed.run("verify")
    knobbed.config(block=8, warps=2)
    before = knobbed.read("config.json")
    answer = knobbed.json("sweep", "config", "--set", "block=2", "--set", "warps=1", "--keep-best")
    assert answer["winner"] is None, "better than the file, not than the best"
    assert knobbed.read("config.json") == before


def test_a_wrong_winner_never_wins(knobbed: Deck) -> None:
    """The best score belongs to a candidate that only the final mode finds wrong."""
    knobbed.kernel('[ "$mode$block" = final4 ] && status=incorrect')
    answer = knobbed.json("sweep", "config", "--keep-best")
    assert answer["winner"]["config"]["block"] == 2
    assert json.loads(knobbed.read("config.json"))["block"] == 2
    assert [one["verdict"] for one in answer["confirmations"]].count(None) == 2


def test_failures_among_the_candidates_are_rows_not_the_end(knobbed: Deck) -> None:
    knobbed.kernel("case $block in 8) status=incorrect ;; 2) kill -9 $$ ;; esac")
    answer = knobbed.json("sweep", "config", "--set", "block=1,2,4,8")
    assert answer["screened"] == {"ok": 2, "crash": 1, "incorrect": 1}
    assert answer["winner"]["config"]["block"] == 4
    failed = {row["config"]["block"]: row for row in answer["leaders"] if row["score"] is None}
    assert failed[2]["status"] == "crash" and "signal 9" in failed[2]["reason"]


def test_a_sweep_in_which_all_fail_ends_with_1(knobbed: Deck) -> None:
    knobbed.kernel("[ $block = 1 ] || status=incorrect")
    answer = knobbed.json("sweep", "config", "--set", "block=2,4,8", code=1)
    assert answer["outcome"] == "done" and answer["reason"] == "no configuration passed the screen"


def test_a_workspace_that_fails_itself_gives_no_baseline(knobbed: Deck) -> None:
    knobbed.kernel("[ $block = 1 ] && status=incorrect")
    answer = knobbed.json("sweep", "config", "--keep-best", code=1)
    assert answer["outcome"] == "failed" and answer["reason"].startswith(
        "the workspace's own files: incorrect"
    )
    knobbed.kernel("status=infra")
    assert knobbed.json("sweep", "config", code=3)["outcome"] == "failed"


def test_a_lost_target_stops_the_sweep_and_keeps_what_was_run(knobbed: Deck) -> None:
    knobbed.kernel("[ $block = 4 ] && status=infra")
    before = knobbed.files()
    answer = knobbed.json("sweep", "config", "--set", "block=2,4,8", "--keep-best", code=3)
    assert answer["outcome"] == "stopped" and answer["reason"] == "the target cannot run trials"
    assert answer["screened"] == {"ok": 2, "infra": 1} and not answer["kept"]
    assert knobbed.files() == before
    assert knobbed.seen()["history"]["infra"] == 2, "it was tried once more"


def test_a_gate_that_could_not_tell_is_said_to_be_one(knobbed: Deck) -> None:
    knobbed.kernel('[ "$mode$block" = final4 ] && status=unstable')
    answer = knobbed.json("sweep", "config", "--set", "block=4", "--keep-best", code=5)
    assert answer["outcome"] == "done" and answer["winner"] is None
    assert answer["reason"] == "no candidate was shown to be better than the best; 1 could not be told"
    assert "too unstable to measure" in answer["confirmations"][0]["reason"]
    knobbed.kernel('[ "$mode$block" = final4 ] && status=infra')
    assert knobbed.json("sweep", "config", "--set", "block=4", code=3)["outcome"] == "stopped"


def test_the_time_that_was_given_ends_the_screen_and_the_leaders_are_still_asked(knobbed: Deck) -> None:
    knobbed.kernel("[ $mode = dev ] && sleep 0.6")
    words = [
        "--config",
        '{"block": 4}',
        "--config",
        '{"block": 8}',
        "--config",
        '{"block": 2}',
        "--max-seconds",
        "1",
    ]
    answer = knobbed.json("sweep", "config", *words)
    assert sum(answer["screened"].values()) < 4
    assert answer["confirmations"]


def test_a_config_edited_meanwhile_stays_and_the_winner_is_kept(knobbed: Deck) -> None:
    reached, go_on = knobbed.root.parent / "reached", knobbed.root.parent / "go-on"
    knobbed.kernel(f"touch {reached}; while [ ! -e {go_on} ]; do sleep 0.01; done")
    command = knobbed.start("sweep", "config", "--set", "block=4", "--keep-best")
    wait_until(reached.exists, "the baseline")
    knobbed.config(block=2, warps=2)
    edited = knobbed.read("config.json")
    go_on.touch()
    out, _ = command.communicate(timeout=60)
    assert command.returncode == 1
    assert (
        "kept as the best, but not written into the workspace: config.json changed meanwhile" in out.decode()
    )
    assert knobbed.read("config.json") == edited
    assert knobbed.seen()["best"]["score"] == 101
    knobbed.run("restore")
    assert '"block": 4' in knobbed.read("config.json")


def test_where_higher_is_better_the_highest_wins(knobbed: Deck) -> None:
    text = CONFIG_TOML.replace("total_ms", "tflops").replace('unit = "ms"', 'direction = "higher"')
    knobbed.write("kerneldeck.toml", text)
    knobbed.write("benchmark.sh", knobbed.read("benchmark.sh").replace("total_ms", "tflops"))
    answer = knobbed.json("sweep", "config", "--keep-best")
    assert answer["winner"]["config"] == {"block": 8, "warps": 2}
    assert [row["score"] for row in answer["leaders"]] == sorted(
        (row["score"] for row in answer["leaders"]), reverse=True
    )
    assert knobbed.json("rank", "--top-n", "1")["rows"][0]["median_score"] == 142


def test_nested_keys_texts_and_truth_values_are_knobs_too_and_the_layout_stays(knobbed: Deck) -> None:
    head = CONFIG_TOML.partition("[knobs]")[0]
    knobs = '"launch.block" = [1, 4]\n"launch.fast" = [true, false]\nform = ["exp", "exp2"]\n'
    knobbed.write("kerneldeck.toml", f"{head}[knobs]\n{knobs}")
    knobbed.write("benchmark.sh", "#!/bin/sh\nfast=true; grep -q '\"fast\": true' config.json || fast=false\n"
                  "form=exp; grep -q exp2 config.json && form=exp2\n"
                  "block=$(sed -n 's/.*\"block\": *\\([0-9]*\\).*/\\1/p' config.json)\n"
                  "score=$((100 - block))\n[ $fast$form = falseexp2 ] && score=$((score - 50))\n"
                  "echo '{\"status\": \"passed\", \"total_ms\": '$score'}'\n")  # fmt: skip
    config = {"note": "größer", "launch": {"block": 1, "fast": True}, "form": "exp"}
    text = json.dumps(config, indent=4, ensure_ascii=False)
    knobbed.write("config.json", text)
    done = knobbed.run("sweep", "config", "--keep-best")
    assert "launch.block=4 launch.fast=false form=exp2" in done.out
    changed = text.replace('"block": 1', '"block": 4').replace("true", "false").replace('"exp"', '"exp2"')
    assert knobbed.read("config.json") == changed
    words = ["--set", "launch.fast=false", "--set", "form=exp2", "--dry-run"]
    assert knobbed.json("sweep", "config", *words)["configs"] == [{"launch.fast": False, "form": "exp2"}]
