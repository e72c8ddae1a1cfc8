"""Operations on an SSH target through the real command line and a real sshd."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.deck import REPO, Deck, environment
from tests.cli.test_startup import loaded
from tests.remote.conftest import Serve
from tests.remote.far import Far, demo_command, far_of
from tests.remote.sshd import User


@pytest.fixture
def far(tmp_path: Path, user: User, serve: Serve) -> Far:
    return far_of(tmp_path, user, serve())


def targets_of(root: Path) -> set[str]:
    with closing(sqlite3.connect(root / ".kerneldeck" / "state.sqlite3")) as database:
        return {row[0] for row in database.execute("SELECT DISTINCT target FROM trials")}


def test_the_demo_runs_unchanged_on_the_target(far: Far, tmp_path: Path) -> None:
    done = subprocess.run(
        demo_command(tmp_path / "demo"), cwd=REPO, env=environment(far.env), capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Trials run on gpu (KERNELDECK_GPU_HOST)." in done.stdout
    assert "on ssh:gpu  final verifier" in done.stdout
    assert "kept: it is the best now, and written into the workspace" in done.stdout
    assert "regressed, restored and verified" in done.stdout
    assert targets_of(tmp_path / "demo" / "tensor_plan") == {"ssh:gpu"}
    assert far.left() == []


def test_the_compiled_kernel_runs_with_the_python_that_is_named(
    tmp_path: Path, user: User, serve: Serve
) -> None:
    folder, home = tmp_path / "rmsnorm", tmp_path / "sshd1" / "home"
    (tmp_path / "bin").mkdir()
    bare_python = tmp_path / "bin" / "python3"
    bare_python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # it has no packages
    bare_python.chmod(0o755)
    far = far_of(tmp_path, user, serve(f"SetEnv HOME={home} PATH={tmp_path / 'bin'}:/usr/bin:/bin"))
    far.deck.run("init", "--template", "cpu_rmsnorm", str(folder), env=far.env)
    far.describe(python="")
    deck = Deck(folder)
    quick = ("--warmup", "1", "--repeats", "2")
    bare = deck.run("run", *quick, env=far.env, code=1).out
    assert "ModuleNotFoundError" in bare
    assert "python3 on ssh:gpu lacks it: kerneldeck target add … --python PATH" in bare
    far.describe(python=sys.executable)
    assert deck.json("run", *quick, env=far.env)["status"] == "ok"
    assert deck.json("verify", *quick, env=far.env)["outcome"] == "first_best"
    assert targets_of(folder) == {"ssh:gpu"} and far.left() == []


def test_a_trial_there_is_told_as_one_here(far: Far) -> None:
    verified = far.deck.json("verify", env=far.env)
    assert verified["outcome"] == "first_best" and far.left() == []
    far.deck.kernel("score=300")
    assert far.deck.json("verify", env=far.env, code=1)["outcome"] == "restored"
    assert far.deck.read("kernel.sh") == "score=100\n"
    far.deck.kernel("score=100; echo '#' >> verifier.sh")
    there = far.deck.json("run", "--mode", "final", env=far.env, code=1)
    here = far.deck.json("run", "--mode", "final", "--target", "local", env=far.env, code=1)
    assert there["status"] == here["status"] == "tampered" and there["reason"] == here["reason"]
    far.deck.kernel("read _ < /dev/zero; score=1; while :; do :; done")
    late = far.deck.json("run", "--timeout", "0.5", env=far.env, code=4)
    assert late["status"] == "timeout"
    assert far.left() == []


def test_remote_and_target_say_where(far: Far) -> None:
    for words in (["--remote", "false"], ["--target", "local"]):
        far.deck.run("run", *words, env=far.env)
    assert targets_of(far.deck.root) == {"local"}
    far.deck.run("run", "--remote", "true", env=far.env)
    far.deck.run("run", "--target", "gpu", env={**far.env, "KERNELDECK_GPU_HOST": None})
    assert targets_of(far.deck.root) == {"local", "ssh:gpu"}
    assert "--remote false" in far.deck.fault("run", "--remote", "false", "--target", "gpu", env=far.env)
    nowhere = {**far.env, "KERNELDECK_GPU_HOST": None}
    assert "no GPU host is configured" in far.deck.fault("run", "--remote", "true", env=nowhere, code=3)


def test_looking_and_dry_runs_do_not_connect(far: Far) -> None:
    far.deck.run("verify", env=far.env)
    far.user.config.write_text("")
    far.describe(host="gone.invalid")
    assert far.deck.json("inspect", env=far.env)["best"] is not None
    assert far.deck.json("verify", "--dry-run", env=far.env)["best"] is not None
    far.deck.kernel("score=101")
    assert far.deck.json("restore", env=far.env)["outcome"] == "restored"


def test_neither_address_nor_key_is_kept(far: Far) -> None:
    far.describe(key_file=str(far.user.key))
    far.deck.run("verify", "--target", "gpu", env=far.env)
    kept = far.kept_bytes()
    assert b"ssh:gpu" in kept
    for private in ("127.0.0.1", str(far.user.key), str(far.user.config), "IdentityFile"):
        assert private.encode() not in kept


def test_reseal_measures_the_best_there(far: Far) -> None:
    far.deck.run("verify", env=far.env)
    far.deck.write("verifier.sh", far.deck.read("verifier.sh") + "# checked twice\n")
    resealed = far.deck.json("reseal", env=far.env)
    assert resealed["outcome"] == "resealed" and resealed["best"]
    assert targets_of(far.deck.root) == {"ssh:gpu"} and far.left() == []


def test_sweep_repeat_and_apply_run_there(far: Far, knobbed: Deck) -> None:
    deck = knobbed
    deck.run("verify", env=far.env)
    assert deck.json("sweep", "config", "--keep-best", env=far.env)["kept"]
    assert deck.json("repeat", "--runs", "2", env=far.env)["passed"] == 2
    refused = deck.json("apply", "--config", '{"block": 8}', "--no-dry-run", env=far.env, code=1)
    assert refused["outcome"] == "refused"
    assert targets_of(deck.root) == {"ssh:gpu"} and far.left() == []


def test_the_scratch_folder_is_cleaned(far: Far) -> None:
    far.deck.run("run", env=far.env)
    cleaned = far.deck.json("target", "clean", "gpu", "--keep-mb", "0", env=far.env)
    assert cleaned["freed_bytes"] > 0 and cleaned["kept_bytes"] == 0 and cleaned["trials"] == {}
    assert far.deck.json("run", env=far.env)["score"] == 100
    assert "freed" in far.deck.run("target", "clean", "gpu", env=far.env).out


def test_a_program_that_is_not_there_is_told_by_its_name(far: Far) -> None:
    toml = far.deck.read("kerneldeck.toml").replace('["./benchmark.sh", "dev"]', '["no-such-program"]')
    far.deck.write("kerneldeck.toml", toml)
    answer = far.deck.json("run", env=far.env, code=3)
    assert answer["status"] == "infra" and answer["stage"] == "spawn"
    assert "no-such-program could not be started" in answer["reason"]


def test_a_variable_and_a_wrapper_reach_the_trial(far: Far) -> None:
    far.describe(wrapper=["env", "WRAPPED=7"])
    with (far.user.folder / ".config/kerneldeck/targets.toml").open("a") as file:
        file.write('[targets.gpu.environment]\nSCORE = "4"\n')
    far.deck.kernel("score=$((SCORE * 10 + WRAPPED))")
    assert far.deck.json("run", env=far.env)["score"] == 47


def test_a_local_run_loads_no_ssh_library(deck: Deck) -> None:
    assert loaded(deck, "run") & {"asyncssh"} == set()


def test_a_modes_limit_on_cpu_time_is_kept_here_and_there(tmp_path: Path, user: User, serve: Serve) -> None:
    far = far_of(tmp_path, user, serve())
    toml = far.deck.root / "kerneldeck.toml"
    toml.write_text(toml.read_text().replace("timeout_s = 60", "timeout_s = 60\ncpu_s = 1"))
    far.deck.kernel("while :; do :; done")
    for target in ("local", "gpu"):
        late = far.deck.json("run", "--target", target, env=far.env, code=4)
        assert (late["status"], late["reason"]) == ("timeout", "used more than 1 s of CPU time, ended")
    assert far.left() == []
