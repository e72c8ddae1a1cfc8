"""kerneldeck.toml: every fault with its line and remedy, and that what we write is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ConfigFault
from core.workspace.config import (
    Files,
    Gate,
    Knob,
    Mode,
    Objective,
    WorkspaceConfig,
)
from core.workspace.toml_reader import parse_toml, read_workspace

WHOLE = """\
schema = 1
name = "gemm"  # a comment
constraints = [
  "tile < 64",
  "unroll * tile <= 256",
]

[objective]
metric = "best_us"
direction = "lower"

[files]
mutable = ["kernel.py", "config.json"]
protected = ["benchmark.py"]

[config]
file = "config.json"

[modes.dev]
benchmark = ["python3", "benchmark.py", "--mode", "dev"]
timeout_s = 30

[modes.final]
benchmark = ["python3", "benchmark.py", "--mode", "final"]
verifier = ["python3", "verifier.py"]

[knobs]
tile = [16, 32]
unroll = { values = [1, 2, 4], affects = "small" }
"nested.warps" = [4, 8]

[gate]
min_gain = 0.01
"""


def fault_of(text: str) -> ConfigFault:
    with pytest.raises(ConfigFault) as fault:
        parse_toml(text, "k.toml")
    return fault.value


def test_a_whole_file_is_read() -> None:
    config = parse_toml(WHOLE)
    assert config == WorkspaceConfig(
        name="gemm",
        objective=Objective("best_us"),
        files=Files(("kernel.py", "config.json"), ("benchmark.py",)),
        modes={
            "dev": Mode("dev", ("python3", "benchmark.py", "--mode", "dev"), (), 30),
            "final": Mode(
                "final", ("python3", "benchmark.py", "--mode", "final"), ("python3", "verifier.py")
            ),
        },
        config_file="config.json",
        knobs=(Knob("tile", (16, 32)), Knob("unroll", (1, 2, 4), "small"), Knob("nested.warps", (4, 8))),
        constraints=("tile < 64", "unroll * tile <= 256"),
        gate=Gate(min_gain=0.01),
    )


# What is replaced in WHOLE, by what, and what is said of it: line, key, why, and what to do.
WRONG = [
    ("schema = 1", "schema = 2", "1: schema: 2 is not a schema this version reads", "write: schema = 1"),
    ("schema = 1", "shcema = 1", "1: shcema: is not a key of this table", "did you mean schema?"),
    ("name =", "nom =", "2: nom: is not a key of this table", "known keys: schema, name, constraints, "),
    ('name = "gemm"', "", " name: is missing", "write name as a text in quotes"),
    ('"gemm"', '""', "2: name: is empty", ""),
    ('"gemm"', "5", "2: name: 5 is not a text in quotes", ""),
    ('"gemm"', "2020-01-01", "2: name: datetime.date(2020, 1, 1) is not a text in quotes", ""),
    ("metric =", "metrik =", "9: objective.metrik: is not a key of this table", "did you mean metric?"),
    ('metric = "best_us"', "", "8: objective.metric: is missing", "write metric as a text in quotes"),
    ('"lower"', '"down"', "10: objective.direction: 'down' is not one of lower, higher", ""),
    ('"lower"', '["lower"]', "10: objective.direction: ['lower'] is not one of lower, higher", ""),
    (
        "direction",
        'decide = "fast"\ndirection',
        "10: objective.decide: there is no mode 'fast'",
        "modes: dev, final",
    ),
    ("direction", "target = nan\ndirection", "10: objective.target: nan is not a finite number", ""),
    ("direction", "target = -inf\ndirection", "10: objective.target: -inf is not a finite number", ""),
    ("direction", "target = true\ndirection", "10: objective.target: True is not a finite number", ""),
    ("direction", "deterministic = 1\ndirection", "10: objective.deterministic: 1 is not true or false", ""),
    (
        '["kernel.py", "config.json"]',
        "[]",
        "13: files.mutable: no file may change",
        "name at least the kernel or its config",
    ),
    ('"kernel.py", ', "5, ", "13: files.mutable: [5, 'config.json'] is not a list of texts", ""),
    (
        '"kernel.py", ',
        '"../up.py", ',
        "13: files.mutable: '../up.py' leaves the workspace",
        "name files relative to the workspace's folder",
    ),
    (
        '"kernel.py", ',
        '"/etc/passwd", ',
        "13: files.mutable: '/etc/passwd' leaves the workspace",
        "name files relative to the workspace's folder",
    ),
    (
        '"kernel.py", ',
        '".", ',
        "13: files.mutable: '.' leaves the workspace",
        "name files relative to the workspace's folder",
    ),
    (
        '"kernel.py", ',
        '"kerneldeck.toml", ',
        "13: files.mutable: kerneldeck.toml says what may change, and may not change itself",
        "take it out",
    ),
    (
        '["benchmark.py"]',
        '["./kernel.py"]',
        "14: files.protected: kernel.py is mutable and protected",
        "leave it in one list",
    ),
    (
        'file = "config.json"',
        'file = "other.json"',
        "17: config.file: other.json is not mutable",
        "add it to files.mutable",
    ),
    (
        '[config]\nfile = "config.json"',
        "",
        "26: knobs: have no file to live in",
        'add: [config] with file = "kernel_config.json"',
    ),
    ('["python3", "verifier.py"]', '""', "25: modes.final.verifier: '' is not a list of texts", ""),
    (
        '["python3", "verifier.py"]',
        '[""]',
        "25: modes.final.verifier: names no program",
        'write: benchmark = ["python3", "benchmark.py"]',
    ),
    ("timeout_s = 30", "timeout_s = 0", "21: modes.dev.timeout_s: must be above 0 seconds", ""),
    ("timeout_s = 30", "timeout_s = -1.5", "21: modes.dev.timeout_s: must be above 0 seconds", ""),
    ("timeout_s = 30", "timeout_s = inf", "21: modes.dev.timeout_s: inf is not a finite number", ""),
    ("timeout_s = 30", 'timeout_s = "30"', "21: modes.dev.timeout_s: '30' is not a finite number", ""),
    ("timeout_s = 30", "cpu_s = 0.5", "21: modes.dev.cpu_s: must be at least 1 second of CPU time", ""),
    ("timeout_s = 30", "cpu_s = nan", "21: modes.dev.cpu_s: nan is not a finite number", ""),
    (
        "timeout_s = 30",
        "timeout = 30",
        "21: modes.dev.timeout: is not a key of this table",
        "did you mean timeout_s?",
    ),
    (
        "[modes.final]",
        "[modes.final]\nx.y = 1",
        "24: modes.final.x: is not a key of this table",
        "known keys: benchmark, verifier, timeout_s, cpu_s",
    ),
    ("tile = [16, 32]", "tile = []", "28: knobs.tile: has no list of values", "write: tile = [1, 2, 4]"),
    ("tile = [16, 32]", "tile = 16", "28: knobs.tile: has no list of values", "write: tile = [1, 2, 4]"),
    (
        "tile = [16, 32]",
        "tile = [16, nan]",
        "28: knobs.tile: nan is not a finite number, a word or a truth value",
        "",
    ),
    (
        "tile = [16, 32]",
        "tile = [\n16,\n[32],\n]",
        "30: knobs.tile: [32] is not a finite number, a word or a truth value",
        "",
    ),
    ("tile = [16, 32]", "tile = [16, 32, 16.0]", "28: knobs.tile: names a value twice", ""),
    (
        '"nested.warps" =',
        "nested.warps =",
        "30: knobs.nested.warps: is not a key of this table",
        'write a dotted knob in quotes: "nested.…" = [1, 2]',
    ),
    (
        '"nested.warps" = [4, 8]',
        '"nested.warps" = 4',
        '30: knobs."nested.warps": has no list of values',
        'write: "nested.warps" = [1, 2, 4]',
    ),
    ("values =", "value =", "29: knobs.unroll.value: is not a key of this table", "did you mean values?"),
    (
        "min_gain = 0.01",
        "min_gain = 1",
        "33: gate.min_gain: 1 is not a fraction from 0 up to 1",
        "write: min_gain = 0.01",
    ),
    (
        "min_gain = 0.01",
        "min_gain = -0.1",
        "33: gate.min_gain: -0.1 is not a fraction from 0 up to 1",
        "write: min_gain = 0.01",
    ),
    ("[gate]", "[gates]", "32: gates: is not a key of this table", "did you mean gate?"),
    ("[gate]", "[[gate]]", "32: gate: [{'min_gain': 0.01}] is not a table", ""),
    (
        '  "unroll * tile <= 256",',
        '  "unroll * tile <= 2 ** 8",',
        "5: constraints: constraint 'unroll * tile <= 2 ** 8', column 18: this operator is not allowed",
        "write comparisons of knobs",
    ),
    (
        '  "tile < 64",',
        '  "tyle < 64",',
        "4: constraints: constraint 'tyle < 64', column 1: 'tyle' is no knob of this workspace",
        "write comparisons of knobs",
    ),
]


@pytest.mark.parametrize(("old", "new", "said", "hint"), WRONG)
def test_a_wrong_line_is_named_with_a_remedy(old: str, new: str, said: str, hint: str) -> None:
    assert old in WHOLE
    fault = fault_of(WHOLE.replace(old, new, 1))
    assert fault.sentence == f"k.toml:{said}"
    assert fault.hint.startswith(hint) and bool(fault.hint) == bool(hint)
    assert fault.exit_code == 2


@pytest.mark.parametrize("section", ["objective", "files", "modes"])
def test_a_missing_table_is_named(section: str) -> None:
    rest = {"objective": '[objective]\nmetric = "m"\n', "files": '[files]\nmutable = ["k"]\n',
            "modes": '[modes.x]\nbenchmark = ["b"]\n'}  # fmt: skip
    text = 'name = "n"\n' + "".join(part for name, part in rest.items() if name != section)
    assert fault_of(text).sentence == f"k.toml: {section}: is missing"
    assert parse_toml('name = "n"\n' + "".join(rest.values())).objective.decide == "x"


def test_no_mode_and_a_mode_without_a_command_are_named() -> None:
    start = 'name = "n"\n[objective]\nmetric = "m"\n[files]\nmutable = ["k"]\n'
    assert fault_of(start + "[modes]\n").sentence == "k.toml:6: modes: no mode is declared"
    fault = fault_of(start + "[modes.final]\n")
    assert fault.sentence == "k.toml:6: modes.final: has no benchmark command"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = ", "k.toml:1: Invalid value (at end of document)"),
        ('a = 1\nname = "x\n', "k.toml:2: Illegal character '\\n', at column 10"),
        ("a = 1\n\n[b\n", "k.toml:3: "),
        ("a = 1\na = 2\n", "k.toml:2: Cannot overwrite a value, at column 6"),
        ("[a]\nx = 1\n[a]\n", "k.toml:3: Cannot declare ('a',) twice, at column 3"),
        ("a = {x = 1, x = 2}\n", "k.toml:1: Duplicate inline table key 'x', at column 18"),
        ("a = [1, 2\n\n", "k.toml:"),
        ("<<<<<<< HEAD\n", "k.toml:1: Invalid statement, at column 1"),
        ("a = \x00\n", "k.toml:1: "),
        (f"a = {'9' * 5000}\n", "k.toml: cannot be read: "),
        (f"a = {'[' * 5000}{']' * 5000}\n", "k.toml: cannot be read: "),
    ],
)
def test_broken_toml_is_named_with_its_line(text: str, sentence: str) -> None:
    fault = fault_of(text)
    assert fault.sentence.startswith(sentence)
    assert fault.exit_code == 2


def test_a_missing_file_names_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigFault) as fault:
        read_workspace(tmp_path)
    assert fault.value.sentence == f"{tmp_path} is no workspace: it has no kerneldeck.toml"
    assert fault.value.hint == f"make one with: kerneldeck init {tmp_path}"


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "kerneldeck.toml").write_bytes(b'schema = 1\nname = "\xff"\n')
    with pytest.raises(ConfigFault) as fault:
        read_workspace(tmp_path)
    assert fault.value.sentence == f"{tmp_path}/kerneldeck.toml:2: not UTF-8"


def test_a_folder_in_place_of_the_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "kerneldeck.toml").mkdir()
    with pytest.raises(ConfigFault) as fault:
        read_workspace(tmp_path)
    assert fault.value.sentence == f"{tmp_path}/kerneldeck.toml cannot be read: Is a directory"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path, ending: str, mark: bytes) -> None:
    (tmp_path / "kerneldeck.toml").write_bytes(mark + WHOLE.replace("\n", ending).encode())
    workspace = read_workspace(tmp_path)
    assert workspace.config == parse_toml(WHOLE)
    assert workspace.toml == tmp_path / "kerneldeck.toml"
    (tmp_path / "kerneldeck.toml").write_bytes(
        mark + WHOLE.replace("0.01", "9").replace("\n", ending).encode()
    )
    with pytest.raises(ConfigFault, match=r"kerneldeck.toml:33: gate.min_gain: "):
        read_workspace(tmp_path)
