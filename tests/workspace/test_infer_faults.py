"""Inference on folders with something wrong, and writing the toml where it cannot go."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from core.errors import ConfigFault
from core.workspace.config import Files, Mode, Objective, WorkspaceConfig
from core.workspace.infer import ProbeOutput, infer, refuse_existing, write_new
from tests.workspace.test_infer import CopyProbe, config_of, found, lay, opened

RESULT = {"status": "passed", "best_us": 4.5}
BENCH = f"import json\nprint(json.dumps({RESULT}))\n"
PLAN = '{"tile": 16}'
MINIMAL = WorkspaceConfig(
    "mine",
    Objective("best_us"),
    Files(("plan.json",), ("benchmark.py",)),
    {"final": Mode("final", ("./bench",))},
)


def says(stdout: str, exit_code: int | None = 0, note: str = "") -> ProbeOutput:
    return ProbeOutput(stdout, exit_code, note)


def test_a_folder_that_is_missing_or_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigFault, match="nowhere does not exist"):
        infer(tmp_path / "nowhere", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigFault, match="file is no folder"):
        infer(tmp_path / "file", None)


def test_an_empty_folder_is_pointed_to_the_templates(tmp_path: Path) -> None:
    with pytest.raises(ConfigFault, match="is empty") as caught:
        infer(tmp_path, None)
    assert "--template" in caught.value.hint


def test_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(ConfigFault, match="no benchmark was found") as caught:
        infer(lay(tmp_path, {"kernel.py": "x = 1\n", "notes.md": "bench", "plan.json": PLAN}), None)
    assert "--benchmark" in caught.value.hint


def test_two_benchmarks_are_named_and_one_can_be_chosen(tmp_path: Path) -> None:
    lay(tmp_path, {"bench_a.py": BENCH, "bench_b.py": BENCH, "plan.json": PLAN})
    with pytest.raises(ConfigFault, match=r"bench_a\.py and bench_b\.py") as caught:
        infer(tmp_path, None)
    assert "--benchmark bench_a.py" in caught.value.hint
    config = config_of(infer(tmp_path, None, benchmark="./bench_b.py"))
    assert config.modes["final"].benchmark == ("python3", "bench_b.py")


def test_of_a_wrapper_and_what_it_calls_the_program_itself_is_taken(tmp_path: Path) -> None:
    lay(tmp_path, {"bench_all.sh": "#!/bin/sh\nexec ./bench_one.sh --json\n", "plan.json": PLAN,
                   "bench_one.sh": "#!/bin/sh\necho '{\"score\": 1}' # --json\n"})  # fmt: skip
    inference = infer(tmp_path, None)
    assert config_of(inference).modes["final"].benchmark[0] == "./bench_one.sh"
    assert found(inference, "also like a benchmark") == "bench_all.sh"


def test_two_programs_that_import_each_other_are_both_named(tmp_path: Path) -> None:
    lay(tmp_path, {"bench_a.py": f"import bench_b\n{BENCH}", "bench_b.py": f"import bench_a\n{BENCH}"})
    with pytest.raises(ConfigFault, match=r"bench_a\.py and bench_b\.py"):
        infer(tmp_path, None)


@pytest.mark.parametrize("role", ["benchmark", "verifier", "config"])
def test_a_given_file_must_be_there(role: str, tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH, "plan.json": PLAN})
    with pytest.raises(ConfigFault, match=rf"{role} 'other\.x' is no file of"):
        infer(tmp_path, None, **{role: "other.x"})


def test_a_given_metric_goes_before_what_was_seen_and_is_doubted_when_absent(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH, "plan.json": PLAN})
    inference = infer(tmp_path, CopyProbe(tmp_path), metric="latency_ms")
    assert config_of(inference).objective.metric == "latency_ms"
    assert "it has best_us" in opened(inference, "latency_ms")


def test_two_likely_verifiers_or_configs_are_left_to_the_person(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH, "verify_a.py": BENCH, "verify_b.py": BENCH, "kernel.py": "",
                   "plan_a.json": PLAN, "plan_b.json": PLAN})  # fmt: skip
    inference = infer(tmp_path, None)
    assert config_of(inference).config_file == ""
    assert "--verifier" in opened(inference, "verify_a.py and verify_b.py")
    assert "--config" in opened(inference, "plan_a.json and plan_b.json")
    chosen = config_of(infer(tmp_path, None, verifier="verify_b.py", config="plan_b.json"))
    assert (chosen.config_file, chosen.modes["final"].verifier) == ("plan_b.json", ("python3", "verify_b.py"))


@pytest.mark.parametrize(
    "content",
    [b"def broken(:\n", b"\xff\xfe\x00", b"x = 1\n\x00", b"x = " + b"(" * 500 + b"1" + b")" * 500,
     b"x = " + b"1+" * 5000 + b"1\n"],
)  # fmt: skip
def test_python_that_cannot_be_read_leaves_the_run_to_say_it_all(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "benchmark.py").write_bytes(content)
    lay(tmp_path, {"plan.json": PLAN, "kernel.py": "def f(:\n"})
    inference = infer(tmp_path, lambda command, timeout_s: says(json.dumps(RESULT)))
    config = config_of(inference)
    assert config.objective.metric == "best_us" and config.modes["final"].benchmark == (
        "python3",
        "benchmark.py",
    )
    assert opened(inference, "benchmark.py").endswith("the run decides alone")
    assert "kernel.py:1" in opened(inference, "kernel.py:")


def test_flags_are_still_seen_in_python_that_does_not_parse(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": 'print "--json", "--mode", "dev", "final"\n', "plan.json": PLAN})
    config = config_of(infer(tmp_path, lambda command, timeout_s: says(json.dumps(RESULT))))
    assert config.modes["dev"].benchmark == ("python3", "benchmark.py", "--json", "--mode", "dev")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"tile": 16,\n "warps" 4}', "plan.json:2:10"),
        ("", "plan.json:1:1"),
        ("\udcff", "plan.json: not valid JSON"),
    ],
)
def test_a_broken_config_is_refused_with_its_place(text: str, place: str, tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH})
    (tmp_path / "plan.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigFault, match=place):
        infer(tmp_path, None)


def test_another_broken_json_file_is_none_of_our_business(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH + "open('plan.json')\n", "plan.json": PLAN, "old_plan.json": "{"})
    assert config_of(infer(tmp_path, None)).config_file == "plan.json"


def test_a_given_config_must_hold_an_object(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH, "plan.json": "[1, 2]"})
    with pytest.raises(ConfigFault, match=r"plan\.json holds no JSON object"):
        infer(tmp_path, None, config="plan.json")


def test_a_link_out_of_the_folder_is_refused_by_name(tmp_path: Path) -> None:
    lay(tmp_path, {"outside.py": "x = 1\n", "in/benchmark.py": BENCH, "in/plan.json": PLAN})
    (tmp_path / "in/kernel.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(ConfigFault, match=r"kernel\.py leads out of the workspace"):
        infer(tmp_path / "in", None)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (says(""), "printed no JSON object (exit 0)"),
        (says("", 1, "Traceback …"), "printed no JSON object (exit 1, Traceback …)"),
        (says("", None, "no python3"), "printed no JSON object (no python3)"),
        (says('{"status": "passed", '), "printed no JSON object"),
        (says('{"status": "failed", "errors": ["large"]}', 1), "did not pass (status failed, exit 1)"),
    ],
)  # fmt: skip
def test_a_run_without_a_score_is_said_and_leaves_no_config(
    output: ProbeOutput, sentence: str, tmp_path: Path
) -> None:
    lay(tmp_path, {"benchmark.sh": "#!/bin/sh\nexec ./hidden\n", "plan.json": PLAN})
    inference = infer(tmp_path, lambda command, timeout_s: output)
    assert inference.config is None
    assert opened(inference, sentence)
    assert "--metric" in opened(inference, "No score was found")


def test_the_source_still_tells_the_score_when_the_run_does_not(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH, "plan.json": PLAN})
    inference = infer(tmp_path, lambda command, timeout_s: says("", 3, "no GPU here"))
    assert config_of(inference).objective.metric == "best_us"
    assert opened(inference, "no GPU here")


def test_an_ambiguous_score_is_chosen_with_reasons_and_said(tmp_path: Path) -> None:
    lay(
        tmp_path, {"benchmark.sh": '#!/bin/sh\necho \'{"time_ms": 2.0, "tflops": 7.0}\'\n', "plan.json": PLAN}
    )
    inference = infer(tmp_path, CopyProbe(tmp_path))
    assert config_of(inference).objective.metric == "time_ms"
    assert "equally likely time_ms, tflops" in opened(inference, "objective.metric")
    assert found(inference, "metric") == "time_ms (named like a time)"


def test_a_listing_that_fails_is_said(tmp_path: Path) -> None:
    source = "import sys, json\nif '--list-valid' in sys.argv: sys.exit('not yet')\n"
    lay(tmp_path, {"benchmark.py": source + BENCH, "plan.json": PLAN})
    assert "not yet" in opened(infer(tmp_path, CopyProbe(tmp_path)), "did not list the space")


def test_a_folder_with_nothing_to_change_gets_no_config(tmp_path: Path) -> None:
    inference = infer(lay(tmp_path, {"benchmark.py": BENCH}), None)
    assert inference.config is None
    assert opened(inference, "mutable = [...]")


def test_without_a_config_what_the_benchmark_imports_is_guessed_to_be_the_kernel(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {"benchmark.py": "import softmax, reference\n" + BENCH, "softmax.py": "", "reference.py": ""},
    )
    inference = infer(tmp_path, None)
    assert config_of(inference).files == Files(("softmax.py",), ("benchmark.py", "reference.py"))
    assert opened(inference, "softmax.py may be the kernel")


def test_names_with_spaces_dashes_quotes_and_newlines(tmp_path: Path) -> None:
    lay(
        tmp_path, {"-bench 'it'.py": BENCH + 'open("my plan.json")\n', "my plan.json": PLAN, "kernel\n.c": ""}
    )
    inference = infer(tmp_path, CopyProbe(tmp_path))
    config = config_of(inference)
    assert config.modes["final"].benchmark == ("python3", "./-bench 'it'.py")
    assert config.config_file == "my plan.json"
    assert config.files.mutable == ("my plan.json", "kernel\n.c")
    assert opened(inference, "may be the kernel")


def test_a_name_that_is_not_utf_8_is_refused_when_it_would_be_written(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH, "plan.json": PLAN, os.fsdecode(b"kernel\xff.c"): ""})
    with pytest.raises(ConfigFault, match="UTF-8 cannot say"):
        write_new(tmp_path, config_of(infer(tmp_path, None)))
    assert not (tmp_path / "kerneldeck.toml").exists()


def test_a_large_folder_is_measured_and_warned_about(tmp_path: Path) -> None:
    lay(tmp_path, {"benchmark.py": BENCH, "plan.json": PLAN})
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(60 << 20)
    inference = infer(tmp_path, None)
    assert (inference.file_count, inference.file_bytes > 60 << 20) == (3, True)
    assert "files.needed" in opened(inference, "63 MB")


def test_what_git_ignores_and_state_do_not_count(tmp_path: Path) -> None:
    ignored = ("build/bench.py", ".kerneldeck/old_bench.py", ".venv/bench.py")
    lay(tmp_path, {"benchmark.py": BENCH, "plan.json": PLAN, ".gitignore": "build/\n"})
    lay(tmp_path, dict.fromkeys(ignored, BENCH))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    inference = infer(tmp_path, None)
    assert inference.file_count == 3
    assert not found(inference, "also like a benchmark")


def test_an_existing_toml_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "kerneldeck.toml").write_text("mine")
    for act in (lambda: refuse_existing(tmp_path), lambda: write_new(tmp_path, MINIMAL)):
        with pytest.raises(ConfigFault, match=r"kerneldeck\.toml exists and is never overwritten"):
            act()
    assert (tmp_path / "kerneldeck.toml").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_dangling_link_in_the_tomls_place_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/kerneldeck.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigFault, match="exists"):
        write_new(tmp_path / "in", MINIMAL)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(ConfigFault, match="cannot be written"):
            write_new(locked, MINIMAL)
    finally:
        os.seteuid(user)
    assert not list(locked.iterdir())


def test_a_folder_that_went_away(tmp_path: Path) -> None:
    with pytest.raises(ConfigFault, match="No such file or directory"):
        write_new(tmp_path / "gone", MINIMAL)


def test_a_file_system_without_hard_links_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = write_new(tmp_path, MINIMAL)
    assert path.read_text().startswith("schema = 1")
    assert list(tmp_path.iterdir()) == [path]


def test_a_configuration_that_would_not_read_back_is_not_written(tmp_path: Path) -> None:
    bad = WorkspaceConfig("mine", MINIMAL.objective, Files((), ()), MINIMAL.modes)
    with pytest.raises(ConfigFault, match="no file may change"):
        write_new(tmp_path, bad)
    assert not list(tmp_path.iterdir())
