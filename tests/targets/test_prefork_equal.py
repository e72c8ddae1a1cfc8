"""A forked trial is what one from nothing is, save the time of its imports: from inside and at its end."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from core.targets.cross_check import CrossCheck
from core.targets.job import Job, Outcome
from tests.targets.bench import Bench

MODULES = ("decimal", "multiprocessing.pool", "logging")

INSIDE = """
import json, multiprocessing.process, os, resource, sys
def told(path):
    link = os.readlink(path)
    return link.partition(":")[0]
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
umask = os.umask(0)
os.umask(umask)
number = len(os.listdir("/proc/self/fd"))
print(json.dumps({
    "score": 1,
    "argv": sys.argv, "orig_argv": sys.orig_argv, "file": __file__, "name": __name__,
    "globals": sorted(globals()), "loader": repr(type(__loader__)), "spec": repr(__spec__),
    "main": sys.modules["__main__"].__dict__ is globals(),
    "path": sys.path, "executable": sys.executable, "prefix": sys.prefix, "flags": repr(sys.flags),
    "cwd": os.getcwd(), "environment": dict(os.environ), "environ": sorted(os.environ),
    "stdin": sys.stdin.read(), "isatty": [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "streams": [(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.fileno())
                for s in (sys.stdout, sys.stderr)],
    "seekable": sys.stdout.seekable(),
    "open": sorted((int(name), told(f"/proc/self/fd/{name}")) for name in os.listdir("/proc/self/fd")
                   if os.path.lexists(f"/proc/self/fd/{name}")),
    "number": number, "began_in": multiprocessing.process.ORIGINAL_DIR,
    "signals": [status[name] for name in ("SigBlk", "SigIgn", "SigCgt")],
    "umask": umask, "leads": os.getsid(0) == os.getpgid(0) == os.getpid(), "nice": os.nice(0),
    "core": resource.getrlimit(resource.RLIMIT_CORE), "oom": open("/proc/self/oom_score_adj").read(),
    "ours": [name for name in ("watchdog", "capped_file", "prefork", "imports", "ending", "forked",
                               "supervisor")
             if name in sys.modules],
}, sort_keys=True))
"""


@dataclass(frozen=True)
class Ended:
    """What is to be the same."""

    outcome: Outcome
    stdout: str
    stderr: str


@pytest.fixture(autouse=True)
def without_the_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a fork says itself is compared, not what its trial says when it is run again from nothing."""

    async def run(_: CrossCheck, job: Job, once: Callable[[Job], Awaitable[Outcome]]) -> Outcome:
        return await once(job)

    monkeypatch.setattr(CrossCheck, "run", run)


def both(bench: Bench, *command: str, modules: tuple[str, ...] = MODULES) -> tuple[Ended, Ended]:
    """The command from nothing, and forked; where they ran is called HERE in what they said."""
    jobs = [
        bench.job("python3", *command, output_dir=bench.folder / name, prefork=named)
        for name, named in (("cold", ()), ("forked", modules))
    ]
    outcomes = bench.each(*jobs)
    assert [outcome.forked for outcome in outcomes] == [False, True], outcomes
    assert outcomes[1].notes == outcomes[0].notes
    cold, forked = (_ended(outcome, job.output_dir) for outcome, job in zip(outcomes, jobs, strict=True))
    return cold, forked


def _ended(outcome: Outcome, folder: Path) -> Ended:
    streams = [_unplaced((folder / name).read_text()) for name in ("stdout", "stderr")]
    plain = replace(outcome, duration_s=0.0, forked=False, result=None, reason=_unplaced(outcome.reason))
    return Ended(plain, *streams)


def _unplaced(text: str) -> str:
    text = re.sub(r"/[^\s\"']*/staging/[0-9a-f]{16}", "HERE", text)
    return re.sub(r"HERE/[0-9a-f]{8}|\b[0-9a-f]{32}\b|0x[0-9a-f]+", "IT", text)


def test_it_finds_what_it_would_find_from_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_VARIABLE", "ä = 1\nb")
    bench.add("inner/bench.py", INSIDE)
    cold, forked = both(bench, "inner/bench.py", "--flag", "a b", "")
    assert cold.outcome.status == "ok"
    assert forked == cold


ENDINGS = {
    "nothing": "print('all')",
    "code": "import sys; print('a'); sys.exit(3)",
    "none": "import sys; sys.exit()",
    "large code": "import sys; sys.exit(1000)",
    "negative code": "import sys; sys.exit(-1)",
    "true": "raise SystemExit(True)",
    "words": "import sys; print('out'); sys.exit('why not')",
    "raises": "def inner():\n    raise ValueError('odd')\n\ninner()",
    "raises from": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('k') from error",
    "syntax": "print('never')\ndef (",
    "null bytes": "print(1)\x00",
    "interrupted": "raise KeyboardInterrupt",
    "signal": "import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "interrupt signal": "import os, signal; os.kill(os.getpid(), signal.SIGINT); signal.pause()",
    "broken pipe": "import os; r, w = os.pipe(); os.close(r); os.write(w, b'x')",
    "leaves at once": "import os; print('lost'); os._exit(5)",
    "atexit": "import atexit; atexit.register(print, 'one'); atexit.register(print, 'two'); print('zero')",
    "atexit raises": "import atexit\ndef f():\n    raise OSError('in it')\natexit.register(f)",
    "thread": "import threading, time\nsaid = threading.Event()\n"
    "def late():\n    said.wait()\n    time.sleep(0.01)\n    print('late')\n"
    "threading.Thread(target=late).start(); print('main'); said.set()",
    "thread raises": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    "daemon": "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "destructor": "class A:\n    def __del__(self):\n        print('gone', __name__)\na = A()",
    "in a cycle": "class A:\n    def __del__(self):\n        print('gone')\na = A(); a.a = a",
    "unclosed": "import os\nfile = open(os.environ['KERNELDECK_RESULT'], 'w')\n"
    'file.write(\'{"status": "ok", "score": 7, "nonce": "\' + os.environ[\'KERNELDECK_NONCE\'] + \'"}\')',
    "closed output": "import sys; print('x'); sys.stdout.close()",
    "output that cannot be flushed": "import os; print('x'); os.close(1)",
    "no output": "import sys; sys.stdout = None; print('x')",
    "own hook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0])\n1 / 0",
    "own hook raises": "import sys\ndef hook(*a):\n    raise OSError('in it')\nsys.excepthook = hook\n1 / 0",
    "group": "raise ExceptionGroup('both', [ValueError(1), KeyError(2)])",
    "generator": "raise GeneratorExit",
    "stderr": "import sys; sys.stderr.write('no newline')",
    "logging": "import logging; logging.warning('told')",
    "C output": "import ctypes; ctypes.CDLL(None).printf(b'from C\\n')",
    "recursion": "def f():\n    f()\ntry:\n    f()\nexcept RecursionError:\n    print('deep')",
    "main": "import sys\nif __name__ == '__main__':\n    print(sys.modules['__main__'].__file__)",
    "stream without closed": "import sys\nclass Tee:\n    def __init__(self):\n        self.to = sys.stdout\n"
    "    def write(self, text):\n        self.to.write(text)\n    def flush(self):\n        pass\n"
    "sys.stdout = Tee(); print('through')",
    "output replaced": "import os, sys; print('kept'); sys.stdout = open(os.devnull, 'w')",
    "output deleted": "import sys; print('kept'); del sys.stdout, sys.stderr",
    "all outputs deleted": "import sys; print('kept'); sys.stdout = sys.__stdout__ = None",
    "output that was deleted is closed": "import os, sys; print('kept'); del sys.stdout; os.close(1)",
    "errors that cannot be flushed": "import sys\nclass Full:\n    def write(self, text):\n        pass\n"
    "    def flush(self):\n        raise OSError\nprint('kept'); sys.stderr = Full()",
    "folder gone": "import os, tempfile; print('kept')\n"
    "folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder); raise SystemExit(3)",
    "elsewhere": "import os, unclosed; os.chdir('/')",
    "unclosed by others": "import os\nfile = open(os.environ['KERNELDECK_RESULT'], 'w')\n"
    'file.write(\'{"status": "ok", "score": 8, "nonce": "\' + os.environ[\'KERNELDECK_NONCE\'] + \'"}\')\n'
    "import logging; logging.held = file",
    "modules cleared": "import sys; print('kept'); sys.modules.clear()",
    "no atexit": "import sys; print('kept'); sys.modules['atexit'] = None",
    "no functions": "import os, signal, gc; print('kept')\n"
    "os.listdir = os.path = os.kill = os.getpid = signal.signal = gc.collect = None",
    "no builtins": "import builtins; print('kept')\n"
    "builtins.getattr = builtins.isinstance = builtins.str = builtins.open = builtins.__import__ = None",
    "interrupted without functions":
        "import os, signal\nos.kill = signal.signal = None\nraise KeyboardInterrupt",
    "no hook": "import sys; del sys.excepthook; 1 / 0",
    "own exit": "import os; print('once'); os._exit = lambda code: None",
    "own exit raises": "import os; print('once')\ndef leave(code):\n    raise OSError\nos._exit = leave",
    "fork": "import os\npid = os.fork()\nif pid == 0:\n    raise SystemExit(4)\nprint(os.waitpid(pid, 0)[1])",
}  # fmt: skip


def test_it_ends_as_it_would_from_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    names = list(ENDINGS)
    bench.add("unclosed.py", ENDINGS["unclosed"])
    for index, name in enumerate(names):
        bench.add(f"bench{index}.py", ENDINGS[name])
    jobs = [
        bench.job(
            "python3", f"bench{index}.py", prefork=modules, output_dir=bench.folder / f"{index}{modules}"
        )
        for modules in ((), MODULES)
        for index in range(len(names))
    ]  # fmt: skip
    outcomes = bench.each(*jobs)
    ended = [_ended(outcome, job.output_dir) for outcome, job in zip(outcomes, jobs, strict=True)]
    assert all(outcome.forked for outcome in outcomes[len(names) :])
    cold, forked = ended[: len(names)], ended[len(names) :]
    assert dict(zip(names, forked, strict=True)) == dict(zip(names, cold, strict=True))
    assert cold[names.index("unclosed")].outcome.score == cold[names.index("elsewhere")].outcome.score == 7
    assert cold[names.index("stream without closed")].stdout == "through\n"
    assert [each.stdout for each in cold].count("kept\n") == 9
    assert cold[names.index("output that cannot be flushed")].outcome.exit_code == 120


PROCESSES = """
import json, multiprocessing, os
def double(x):
    return x * 2
if __name__ == "__main__":
    found = {}
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            found[method] = pool.map(double, [1, 2])
    print(json.dumps({"score": 1, **found, "pids": len({os.getpid(), os.getppid()})}))
"""


def test_its_processes_may_be_forked_or_spawned(bench: Bench) -> None:
    bench.add("inner/bench.py", PROCESSES)
    cold, forked = both(bench, "inner/bench.py")
    assert '"spawn": [2, 4]' in forked.stdout
    assert forked == cold


def test_modules_of_its_own_are_its_own(bench: Bench) -> None:
    names = (
        "watchdog",
        "supervisor",
        "capped_file",
        "prefork",
        "imports",
        "ending",
        "forked",
        "local",
        "result",
    )
    for name in names:
        bench.add(f"{name}.py", f"VALUE = 'mine: {name}'")
    imports = "\n".join(f"import {name}; print({name}.VALUE)" for name in names)
    bench.add("bench.py", imports)
    cold, forked = both(bench, "bench.py")
    assert forked.stdout.count("mine") == len(names)
    assert forked == cold


def test_what_its_modules_hold_is_let_go_at_the_end(bench: Bench) -> None:
    bench.add("part.py", "class A:\n    def __del__(self):\n        print('gone', __name__)\na = A()")
    bench.add("bench.py", "import part; file = open('out', 'w'); print('end')")
    cold, forked = both(bench, "bench.py")
    assert forked.stdout == "end\ngone part\n"
    assert forked == cold


def test_a_module_of_its_own_in_place_of_an_imported_one_is_found(bench: Bench) -> None:
    bench.add("decimal.py", "VALUE = 'mine'")
    bench.add("bench.py", "import decimal; print(decimal.VALUE)")
    cold, forked = both(bench, "bench.py")
    assert forked.stdout == "mine\n"
    assert forked == cold


@pytest.mark.parametrize("command", [("missing.py",), (".",), ("packed",)])
def test_what_is_no_file_of_source_is_executed(bench: Bench, command: tuple[str, ...]) -> None:
    bench.add("packed/__main__.py", "import sys; print(sys.path[0], __file__)")
    cold, forked = both(bench, *command)
    assert forked == cold
