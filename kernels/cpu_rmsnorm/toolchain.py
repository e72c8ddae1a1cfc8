"""From a candidate's folder to a callable kernel: reads the config, builds kernel.c, loads the library."""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cases import EPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cases import Floats, Inputs

    Kernel = Callable[[Inputs, Floats], Callable[[], object]]  # of inputs and output: the call on them

CONFIG_FILE, SOURCE_FILE, FUNCTION = "kernel_config.json", "kernel.c", "rmsnorm_silu"
COMPILE_TIMEOUT_S, SHOWN_LINES = 60, 12

SAFE = ("-fno-math-errno", "-fno-trapping-math")  # no result changes, but loops with libm or ?: may vectorise
FLAGS = {
    "O2": ("-O2",),
    "O3": ("-O3", *SAFE),
    "O3_native": ("-O3", "-march=native", *SAFE),
    "Ofast_native": ("-Ofast", "-march=native"),
}
EXP_FORMS = {"expf": "EXP_EXPF", "exp2f": "EXP_EXP2F", "poly": "EXP_POLY", "rational": "EXP_RATIONAL"}
DOMAINS: dict[str, tuple[int | str, ...]] = {
    "tile": (64, 256, 1024),
    "unroll": (1, 2, 4, 8),
    "threads": (1, 2, 4, 8),
    "exp_form": tuple(EXP_FORMS),
    "flags": tuple(FLAGS),
    "rows_per_chunk": (1, 8),
}

PROBE = """#include <math.h>
float probe(const float *x, long n) {
    float sum = 0.0f;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += sqrtf(x[i]);
    return sum;
}
"""


class InvalidConfig(ValueError):
    """The config cannot be used; the message says where and what it may be."""


class CompileError(ValueError):
    """kernel.c does not become a library with the kernel in it; `lines` begin with a sentence."""

    def __init__(self, *lines: str) -> None:
        super().__init__(lines[0])
        self.lines = list(lines)


class NoCompiler(RuntimeError):
    """This machine cannot build C at all; the message says what to install."""


class Config(NamedTuple):
    """The knobs of one candidate."""

    tile: int
    unroll: int
    threads: int
    exp_form: str
    flags: str
    rows_per_chunk: int

    @property
    def macros(self) -> list[str]:
        """The -D options that carry the knobs into kernel.c."""
        return [
            f"-DTILE={self.tile}",
            f"-DUNROLL={self.unroll}",
            f"-DTHREADS={self.threads}",
            f"-DEXP_FORM={EXP_FORMS[self.exp_form]}",
            f"-DROWS_PER_CHUNK={self.rows_per_chunk}",
        ]

    @property
    def openmp(self) -> list[str]:
        """The option for OpenMP, only where threads need it: not every compiler has it."""
        return ["-fopenmp"] if self.threads > 1 else []


def read_config(folder: Path) -> Config:
    """The folder's config; InvalidConfig when it is not exactly one legal value for every knob."""
    try:
        values = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{CONFIG_FILE} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidConfig(f"{CONFIG_FILE} is no JSON: {error}") from None
    return config_of(values)


def config_of(values: object) -> Config:
    """The config that these knob values make; InvalidConfig as `read_config`."""
    if not isinstance(values, dict):
        raise InvalidConfig(
            f"{CONFIG_FILE} is no JSON object: give every knob a value, like {{'tile': 64, …}}"
        )
    for knob in DOMAINS.keys() - values.keys():
        raise InvalidConfig(f"{CONFIG_FILE}: {knob} is missing: give it {_alternatives(knob)}")
    for knob in values.keys() - DOMAINS.keys():
        raise InvalidConfig(f"{CONFIG_FILE}: {knob} is no knob: the knobs are {', '.join(DOMAINS)}")
    for knob, value in values.items():
        if type(value) is not type(DOMAINS[knob][0]) or value not in DOMAINS[knob]:
            raise InvalidConfig(f"{CONFIG_FILE}: {knob}: {value!r} is not {_alternatives(knob)}")
    return _constrained(Config(**values))


def _alternatives(knob: str) -> str:
    return "one of " + ", ".join(str(value) for value in DOMAINS[knob])


def _constrained(config: Config) -> Config:
    if config.tile < 16 * config.unroll:
        raise InvalidConfig(
            f"{CONFIG_FILE}: tile {config.tile} is below 16 * unroll {config.unroll}: raise tile"
        )
    if config.threads == 1 and config.rows_per_chunk != 1:
        raise InvalidConfig(
            f"{CONFIG_FILE}: rows_per_chunk {config.rows_per_chunk} means nothing to one thread: set it to 1"
        )
    return config


class Compiler(NamedTuple):
    """The command that compiles C and what it calls itself."""

    command: tuple[str, ...]
    version: str


def find_compiler() -> Compiler:
    """$CC if that is set, else the first of cc, gcc and clang on PATH; NoCompiler when there is none."""
    named = shlex.split(os.environ.get("CC", ""))
    for command in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            said = _run_compiler([*command, "--version"], Path.cwd()).stdout.splitlines()
            return Compiler(tuple(command), said[0] if said else command[0])
    absent = (
        f"CC names {named[0]!r}, which is not on PATH" if named else "there is no cc, gcc or clang on PATH"
    )
    raise NoCompiler(
        f"cpu_rmsnorm needs a C compiler, and {absent}: install one (apt-get install gcc libc6-dev)"
    )


def build(folder: Path, config: Config, compiler: Compiler) -> Path:
    """The library of the folder's kernel.c, built now unless the folder holds it from before.

    Raises CompileError when that is the candidate's fault, NoCompiler when the compiler fails at anything.
    """
    try:
        source = (folder / SOURCE_FILE).read_bytes()
    except OSError as error:
        raise CompileError(f"{SOURCE_FILE} cannot be read: {error.strerror}") from None
    options = ["-std=gnu11", "-fPIC", *FLAGS[config.flags], *config.openmp]
    key = hashlib.sha256(repr((compiler, options, config.macros)).encode() + source).hexdigest()[:20]
    cache = _cache_folder(folder)
    library = cache / f"{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=cache) as work:
            _compile(folder / SOURCE_FILE, [*options, *config.macros], config.openmp, compiler, Path(work))
            (Path(work) / "kernel.so").replace(library)
    return library


def _cache_folder(folder: Path) -> Path:
    cache = folder / ".build"
    try:
        cache.mkdir(exist_ok=True)
        (cache / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError:
        cache = Path(tempfile.mkdtemp(prefix="cpu_rmsnorm_"))
        atexit.register(shutil.rmtree, cache, ignore_errors=True)
    return cache


def _compile(source: Path, options: list[str], openmp: list[str], compiler: Compiler, work: Path) -> None:
    # Linked apart from the flags: with -Ofast the linker would add start-up code that makes the whole process
    # flush denormals, the other arms included.
    made = [*compiler.command, *options, "-c", source.name, "-o", str(work / "kernel.o")]
    linked = [
        *compiler.command,
        "-shared",
        *openmp,
        str(work / "kernel.o"),
        "-lm",
        "-o",
        str(work / "kernel.so"),
    ]
    for command in (made, linked):
        done = _run_compiler(command, source.parent)
        if done.returncode:
            _check_toolchain(options, openmp, compiler, work)
            lines = (done.stderr or done.stdout).splitlines()[:SHOWN_LINES]
            raise CompileError(
                f"{SOURCE_FILE} does not compile with {shlex.join([*compiler.command, *options])}:", *lines
            )


def _check_toolchain(options: list[str], openmp: list[str], compiler: Compiler, work: Path) -> None:
    """NoCompiler when the same options fail on a source that is known to be right."""
    (work / "probe.c").write_text(PROBE, encoding="utf-8")
    command = [*compiler.command, *options, "-shared", "probe.c", "-lm", "-o", "probe.so"]
    done = _run_compiler(command, work)
    if done.returncode:
        said = (done.stderr.splitlines() or ["no reason given"])[0]
        need = "a C library and OpenMP" if openmp else "a C library"
        raise NoCompiler(
            f"{compiler.version} fails even on a known source ({said}): install a compiler with {need}"
            " (apt-get install gcc libc6-dev)"
        )


def _run_compiler(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        # A swamped machine does this to an honest kernel: no verdict on the candidate.
        raise NoCompiler(f"{command[0]} took more than {COMPILE_TIMEOUT_S} s: free the machine") from None
    except OSError as error:
        raise NoCompiler(f"{command[0]} cannot be run ({error.strerror}): set CC to a C compiler") from None


def load(library: Path) -> Kernel:
    """The library, loaded anew even if it was before.

    Raises CompileError when it cannot be loaded or lacks the kernel.
    """
    # Threads that wait asleep: spinning ones are first to lose a busy core, and then stall every launch for a
    # scheduler's slice, 12 ms instead of 0.5. The OpenMP runtime reads this when its first library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # A copy each time: the dynamic loader would hand out the same library for the same file.
    with tempfile.TemporaryDirectory(dir=library.parent) as own:
        copy = shutil.copy(library, own)
        try:
            function = ctypes.CDLL(str(copy), mode=os.RTLD_NOW | os.RTLD_LOCAL)[FUNCTION]
        except OSError as error:
            raise CompileError(f"the library of {SOURCE_FILE} cannot be loaded: {error}") from None
        except AttributeError:
            raise CompileError(
                f"{SOURCE_FILE} has no function {FUNCTION}: keep its name and arguments"
            ) from None
    function.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_float, *[ctypes.c_void_p] * 4]
    function.restype = None
    return functools.partial(_bound, function)


def _bound(function: Callable[..., None], inputs: Inputs, y: Floats) -> Callable[[], object]:
    rows, dim = inputs.x.shape
    # data_as keeps its array alive, and with it the buffer behind the address.
    addresses = [values.ctypes.data_as(ctypes.c_void_p) for values in (*inputs, y)]
    return functools.partial(function, rows, dim, EPS, *addresses)
