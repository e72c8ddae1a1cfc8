"""What a benchmark is told: the trial interface's variables, and nothing that names the phase."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from core.targets.job import Layout
from core.targets.local import local_facts
from tests.targets.bench import Bench

TELL = """
import json, os, sys
from pathlib import Path
arms = [{name.name: name.read_text() for name in Path(folder).iterdir()}
        for folder in json.loads(os.environ.get("KERNELDECK_ARMS", "[]"))]
visits = os.environ.get("KERNELDECK_VISITS")
print(json.dumps({"score": 1, "environment": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv[1:],
                  "arms": arms, "visits": visits and Path(visits).read_text(),
                  "interpreter": sys.executable, "prefix": sys.prefix}))
"""


def told(bench: Bench, *arguments: str, **more: object) -> dict[str, object]:
    outcome = bench.run("python3", "-c", TELL, *arguments, **more)
    assert outcome.result is not None, outcome
    return outcome.result


def test_the_variables_of_the_interface_are_set_and_no_others_of_ours(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ARMS", "VISITS", "WARM_S", "RESULT", "NONCE", "STATE_DIR", "ANYTHING"):
        monkeypatch.setenv(f"KERNELDECK_{name}", "inherited")
    monkeypatch.setenv("OTHER", "kept")
    environment = told(bench)["environment"]
    assert isinstance(environment, dict)
    ours = {name: value for name, value in environment.items() if name.startswith("KERNELDECK_")}
    assert set(ours) == {"KERNELDECK_RESULT", "KERNELDECK_NONCE"}
    assert "inherited" not in ours.values()
    assert environment["OTHER"] == "kept"


def test_several_arms_are_told_in_their_order_and_one_may_stand_twice(bench: Bench) -> None:
    best, other = (Layout({"kernel.py": bench.version(text)}) for text in ("best", "other"))
    found = told(bench, slots=(best, other, best))
    assert found["arms"] == [{"kernel.py": "best"}, {"kernel.py": "other"}, {"kernel.py": "best"}]
    environment = found["environment"]
    assert isinstance(environment, dict)
    folders = json.loads(environment["KERNELDECK_ARMS"])
    assert folders[0] == folders[2] != folders[1]
    assert found["cwd"] == folders[0]


def test_one_arm_is_the_current_folder(bench: Bench) -> None:
    assert told(bench, slots=(Layout({"kernel.py": bench.version("1")}),))["arms"] == []


def test_visits_are_told_where_they_are_asked_for(bench: Bench) -> None:
    visits = '{"order": [0, 1, 0]}\n{"order": [1, 0, 0]}\n'
    assert told(bench, visits=visits)["visits"] == visits


def test_nothing_tells_the_phase(bench: Bench) -> None:
    """A screen, a repeat and a final of the same candidate differ in random names only."""
    seen = []
    for number in (1, 2):
        job = replace(bench.job("python3", "-c", TELL), output_dir=bench.folder / f"verify-{number}")
        result = bench.each(job)[0].result
        assert result is not None
        environment = result["environment"]
        random = [environment.pop(name) for name in ("KERNELDECK_RESULT", "KERNELDECK_NONCE")]
        cwd = result.pop("cwd")
        assert environment.pop("PWD") == cwd
        assert "verify" not in json.dumps(result) + cwd + "".join(random)
        shape = [Path(path).relative_to(bench.staging_folder).parts for path in (cwd, random[0])]
        seen.append((result, [[len(part) for part in parts] for parts in shape], len(random[1])))
    assert seen[0] == seen[1]


def test_python3_is_our_interpreter(bench: Bench) -> None:
    found = told(bench)
    assert found["prefix"] == sys.prefix
    assert Path(str(found["interpreter"])).parent == Path(sys.executable).parent


def test_python3_is_our_interpreter_in_what_the_command_starts(bench: Bench) -> None:
    outcome = bench.shell("python3 -c 'import sys; print(sys.prefix)'; echo '{\"score\": 1}'")
    assert outcome.score == 1.0
    assert bench.printed().splitlines()[0] == sys.prefix


def test_nothing_leads_back_into_the_folder_we_were_called_from(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.staging()
    monkeypatch.chdir(bench.root)
    monkeypatch.setenv("PWD", str(bench.root))
    monkeypatch.setenv("OLDPWD", str(bench.root))
    assert str(bench.root) not in json.dumps(told(bench))


def test_arguments_arrive_as_they_are(bench: Bench) -> None:
    odd = ("", " ", "a b", "$HOME", "`id`", "'", '"', "\n", "*", "--mode", os.fsdecode(b"\xff"), "ü")
    assert told(bench, *odd)["argv"] == list(odd)


def test_variables_of_any_bytes_arrive_as_they_are(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff\xfe="))
    environment = told(bench)["environment"]
    assert isinstance(environment, dict)
    assert environment["ODD"] == os.fsdecode(b"\xff\xfe=")


def test_the_facts_name_the_machine_the_interpreter_and_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 99.1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = local_facts()
    assert facts.device
    assert facts.driver == f"{platform.system()} {platform.machine()}"
    assert facts.toolchain == f"python {platform.python_version()}, cc 99.1"


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/no/such\n", "#!/bin/sh\n"])
def test_a_compiler_that_does_not_tell_its_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(script)
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert local_facts().toolchain.endswith(", cc")


def test_without_a_compiler_the_facts_name_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("cc") is None
    assert local_facts().toolchain == f"python {platform.python_version()}"
