"""The wheel, built once and used in a clean environment next to somebody else's package named `core`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheel and its dependencies, nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "clean", with_pip=True)
    programs = folder / "clean" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", str(wheel)], check=True, capture_output=True)
    return programs


def test_the_wheel_works_beside_a_decoy_core(installed: Path, tmp_path: Path) -> None:
    decoy = tmp_path / "decoy"
    for name in ("core", "sessions", "kernels", "tui"):
        (decoy / name).mkdir(parents=True)
        (decoy / name / "__init__.py").write_text('raise ImportError("the decoy was imported")\n')
    environment = {**os.environ, "PYTHONPATH": str(decoy), "KERNELDECK_HOST_IDLE_S": "0"}
    workspace = tmp_path / "plan"

    def kerneldeck(*arguments: str) -> dict[str, object]:
        command = [str(installed / "kerneldeck"), *arguments, "--json"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    kerneldeck("init", "--template", "tensor_plan", str(workspace))
    answer = kerneldeck("run", "--mode", "final", "-C", str(workspace))
    assert answer["score"] == 33_975_173
