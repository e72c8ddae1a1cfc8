"""Every operation, declared once."""

from __future__ import annotations

from core.operations.declaration import Argument, Kind, Operation

WARMUP = Argument("warmup", Kind.INTEGER, "warm-up calls, where the command takes them", 20, minimum=0)
REPEATS = Argument("repeats", Kind.INTEGER, "timed calls, where the command takes them", 50, minimum=1)
MAX_SCORE = Argument("max_score", Kind.NUMBER, "the objective may not be worse than this")
DRY_RUN = Argument("dry_run", Kind.FLAG, "only say what would be done", False)
SEED = Argument("seed", Kind.INTEGER, "seed of all random orders; a new one when not given", minimum=0)
MODE_FINAL = Argument("mode", Kind.TEXT, "which cases to run; final is the deciding mode", "final")
REMOTE = Argument(
    "remote", Kind.TEXT, "run on the configured GPU host: auto, true or false", "auto",
    choices=("auto", "true", "false"),
)  # fmt: skip
TARGET = Argument(
    "target", Kind.TEXT, "where trials run: NAME, ssh:HOST or local; the one in use when not given", "",
)  # fmt: skip
TIMEOUT = Argument(
    "timeout_seconds", Kind.NUMBER, "end the run after so many seconds; the mode's own when not given",
    minimum=0.001, maximum=2_000_000, flag="--timeout",
)  # fmt: skip

INSPECT = Operation(
    "inspect_context", ("inspect",),
    "Show the workspace: objective, cases, files and their seal, the best, the last results.",
    read_only=True,
)  # fmt: skip

RUN = Operation(
    "run_objective", ("run",),
    "Run the benchmark (or the verifier) once, on what the workspace holds, and record it.",
    (
        Argument("mode", Kind.TEXT, "which cases to run; final is the deciding mode", "dev"),
        Argument("verifier", Kind.FLAG, "run the verifier instead of the benchmark", False),
        WARMUP, REPEATS, REMOTE, TARGET, TIMEOUT,
        Argument("workspace_tag", Kind.TEXT, "a word kept with the record of this call", "", flag="--tag"),
    ),
    long=True,
)  # fmt: skip

REPEAT = Operation(
    "repeat_objective", ("repeat",),
    "Run the objective several times in fresh processes: median, spread, per-case spread.",
    (
        MODE_FINAL,
        Argument("verifier", Kind.FLAG, "run the verifier; the default in final mode"),
        Argument("runs", Kind.INTEGER, "how many fresh processes", 3, minimum=1, maximum=10),
        WARMUP, REPEATS, MAX_SCORE,
        Argument(
            "restore_on_regression", Kind.FLAG, "go on with a guarded verification, which may restore", False
        ),
        TARGET, DRY_RUN,
    ),
    long=True,
)  # fmt: skip

SWEEP_CONFIG = Operation(
    "sweep_kernel_config", ("sweep", "config"),
    "Run many configurations, ask the gate about the leaders, and keep the winner if asked to.",
    (
        Argument("mode", Kind.TEXT, "the mode that screens", "dev"),
        Argument("verifier", Kind.FLAG, "screen with the verifier", False),
        Argument("warmup", Kind.INTEGER, "warm-up calls, where the command takes them", 5, minimum=0),
        Argument("repeats", Kind.INTEGER, "timed calls, where the command takes them", 15, minimum=1),
        Argument("keep_best", Kind.FLAG, "make a winner the best, and write it into the workspace", False),
        Argument("configs", Kind.OBJECTS, "configurations to run, each a JSON object", (), flag="--config"),
        Argument("knobs", Kind.KNOBS, "values to cross, by knob: NAME=V1,V2; all declared ones by default",
                 None, flag="--set"),
        Argument("num_warps", Kind.SCALARS, "the same for the knob num_warps", None),
        Argument("num_stages", Kind.SCALARS, "the same for the knob num_stages", None),
        Argument("block_size", Kind.SCALARS, "the same for the knob block_size", None),
        Argument("max_configs", Kind.INTEGER, "run at most so many; a seeded sample of a larger space",
                 120, minimum=1, maximum=100_000),
        Argument("finalists", Kind.INTEGER, "leaders the gate is asked about", 3, minimum=1, maximum=32),
        Argument("max_seconds", Kind.NUMBER, "stop screening after so many seconds", minimum=1),
        SEED, TARGET, DRY_RUN,
    ),
    long=True,
)  # fmt: skip

SWEEP_RESUME = Operation(
    "resume_sweep", ("sweep", "resume"),
    "Go on with a detached sweep whose process has gone; one that has ended is reported again.",
    (
        Argument("sweep", Kind.INTEGER, "its number; the one that waits to go on when not given",
                 minimum=1, maximum=2_000_000_000, positional=True),
        TARGET,
    ),
    long=True,
)  # fmt: skip

_SWEEP = Argument("sweep", Kind.INTEGER, "its number; the one that runs when not given", minimum=1,
                  maximum=2_000_000_000)  # fmt: skip
_CANDIDATE = Argument("candidate", Kind.TEXT, "the beginning of its id", "", positional=True)

SWEEP_PAUSE = Operation(
    "pause_sweep", ("sweep", "pause"),
    "Pause the sweep that runs: its running trial goes on to its end, the next waits.",
    (_SWEEP,), control="pause",
)  # fmt: skip

SWEEP_CONTINUE = Operation(
    "continue_sweep", ("sweep", "continue"), "Let a paused sweep go on.", (_SWEEP,), control="resume",
)  # fmt: skip

SWEEP_STOP = Operation(
    "stop_sweep", ("sweep", "stop"),
    "Stop the sweep that runs, for good: what was screened stays in the history.",
    (_SWEEP,), control="stop",
)  # fmt: skip

SWEEP_CANCEL = Operation(
    "cancel_candidate", ("sweep", "cancel"),
    "Cancel a waiting candidate of the sweep that runs, or the running one when none is named.",
    (_CANDIDATE, _SWEEP), control="cancel",
)  # fmt: skip

SWEEP_MOVE = Operation(
    "move_candidate", ("sweep", "move"),
    "Let a waiting candidate of the sweep that runs have its turn sooner or later.",
    (_CANDIDATE, Argument("by", Kind.INTEGER, "so many places later; sooner where negative", -1), _SWEEP),
    control="move",
)  # fmt: skip

SWEEP_RETRY = Operation(
    "retry_candidate", ("sweep", "retry"),
    "Let a candidate wait again that was cancelled, or that the target could not run.",
    (_CANDIDATE, _SWEEP), control="retry",
)  # fmt: skip

VERIFY = Operation(
    "guarded_final_verify", ("verify",),
    "Verify what the workspace holds: keep it if better than the best, restore the best if it regressed.",
    (
        MODE_FINAL,
        Argument("verifier", Kind.FLAG, "verify with the verifier", True),
        WARMUP, REPEATS, MAX_SCORE,
        Argument("restore_on_regression", Kind.FLAG, "put the best back when this regressed", True),
        Argument("restore_files", Kind.TEXTS, "restore only these mutable files", ()),
        SEED, TARGET, DRY_RUN,
    ),
    long=True,
)  # fmt: skip

RESTORE = Operation(
    "restore_best_checkpoint", ("restore",),
    "Write the best checkpoint's files back into the workspace; what they replace is kept.",
    (
        Argument("files", Kind.TEXTS, "only these mutable files", ()),
        Argument("checkpoint", Kind.TEXT, "another checkpoint, or what was tried once, by its id", ""),
        DRY_RUN,
    ),
)  # fmt: skip

RANK = Operation(
    "rank_history", ("rank",),
    "Rank the recorded candidates of this contract by their score.",
    (
        Argument("history_path", Kind.TEXT, "rank another workspace's history", ""),
        Argument("mode", Kind.TEXT, "the mode to rank; the deciding one by default", ""),
        Argument("top_n", Kind.INTEGER, "how many", 10, minimum=1, maximum=10_000),
    ),
    read_only=True,
)  # fmt: skip

APPLY = Operation(
    "apply_candidate", ("apply",),
    "Write a candidate into the workspace, once it passed the final verification and the gate.",
    (
        Argument("config", Kind.OBJECT, "knobs to set on the best, as a JSON object", None),
        Argument("trial", Kind.INTEGER, "the candidate of this trial", minimum=1, maximum=2_000_000_000),
        Argument("candidate", Kind.TEXT, "a candidate or checkpoint, by the beginning of its id", ""),
        Argument("dry_run", Kind.FLAG, "only say what would be written", True),
        Argument("require_final_pass", Kind.FLAG, "a failed verification refuses it in any case", True),
        Argument("require_improvement", Kind.FLAG, "the gate must call it faster", True),
        SEED, TARGET,
    ),
    long=True,
)  # fmt: skip

RESULT = Operation(
    "update_result_json", ("result",),
    "Write the score into a result file: metrics.<objective>, metrics.score, verification and notes.",
    (
        Argument("result_path", Kind.TEXT, "the file, seen from the workspace's folder", "result.json",
                 positional=True),
        Argument("status", Kind.TEXT, "status to write", None),
        Argument("verified", Kind.FLAG, "whether the score was verified; known from the best by default"),
        Argument("score", Kind.NUMBER, "score to write; the best's by default"),
        Argument("best_us", Kind.NUMBER, "the same, under its name for times"),
        Argument("summary", Kind.TEXT, "one sentence", None),
        Argument("verification", Kind.OBJECT, "fields of the verification", None),
        Argument("reflection", Kind.OBJECT, "fields of the reflection", None),
        Argument("used_harness_tools", Kind.TEXTS, "tools that were used", None, flag="--used-tool"),
        Argument("used_harness_artifacts", Kind.TEXTS, "artifacts used", None, flag="--used-artifact"),
    ),
)  # fmt: skip

INIT = Operation(
    "init_workspace", ("init",),
    "Make a workspace of a folder: infer its kerneldeck.toml, or lay a template out.",
    (
        Argument("folder", Kind.TEXT, "the folder", ".", positional=True),
        Argument("template", Kind.TEXT, "lay this shipped workspace out there", ""),
        Argument("benchmark", Kind.TEXT, "the benchmark's file, when it cannot be told", ""),
        Argument("verifier", Kind.TEXT, "the verifier's file, when it cannot be told", ""),
        Argument("config", Kind.TEXT, "the JSON config or plan, when it cannot be told", ""),
        Argument("metric", Kind.TEXT, "the score's key, when it cannot be told", ""),
        Argument(
            "direction", Kind.TEXT, "which scores are better, when it cannot be told", None,
            choices=("lower", "higher"),
        ),
        Argument("timing", Kind.FLAG, "also lay the timing file in, for a benchmark that will use it", False),
        Argument("dev_run", Kind.FLAG, "run the benchmark once to see what it prints", True),
        DRY_RUN,
    ),
    people_only=True,
    needs_workspace=False,
)  # fmt: skip

RESEAL = Operation(
    "reseal_workspace", ("reseal",),
    "Accept changed protected files: show the difference, make a new contract, measure the old best in it.",
    (TARGET, DRY_RUN),
    people_only=True,
)  # fmt: skip

GC = Operation(
    "collect_garbage", ("gc",),
    "Free space in the state of record: what is beyond its quota of samples, contents and staging.",
    (
        Argument("samples_mb", Kind.NUMBER, "quota for samples and captured output", 2000.0, minimum=0),
        Argument("blobs_mb", Kind.NUMBER, "quota for contents no checkpoint needs", 500.0, minimum=0),
        Argument("staging_mb", Kind.NUMBER, "quota for staging folders and linked copies", 1000.0, minimum=0),
        DRY_RUN,
    ),
)  # fmt: skip

UNLOCK = Operation(
    "release_lock", ("unlock",),
    "Release a lock that another machine left, on a workspace on a network file system.",
    people_only=True,
)  # fmt: skip

_NAMED = Argument("name", Kind.TEXT, "the target: NAME, ssh:HOST or local", "", positional=True)
_HEALTH_OF = (
    Argument("require_remote", Kind.FLAG, "this machine will not do", False),
    Argument("require_gpu", Kind.FLAG, "a machine without a GPU will not do", True),
    Argument("min_free_mb", Kind.NUMBER, "free space wanted in the scratch folder, MB; 256, or the target's",
             minimum=0),
    Argument("timeout_seconds", Kind.NUMBER, "wait so long for each step", 8.0, minimum=1, maximum=60,
             flag="--timeout"),
    Argument("cached", Kind.FLAG, "what was found in the last minute will do; it is shown with its age",
             False),
    DRY_RUN,
)  # fmt: skip

HEALTH = Operation(
    "remote_health_check", ("health",),
    "Check the target stage by stage: connection, host key, login, Python, scratch folder, GPU.",
    (
        _NAMED, TARGET,
        Argument("host", Kind.TEXT, "a host instead of a target", ""),
        Argument("port", Kind.INTEGER, "its port", minimum=1, maximum=65535),
        Argument("key", Kind.TEXT, "its key file", ""),
        Argument("remote_root", Kind.TEXT, "its scratch folder", ""),
        Argument("check_local_cuda", Kind.FLAG, "without a GPU host, this machine must have a GPU", True),
        *_HEALTH_OF,
    ),
    read_only=True,
    needs_workspace=False,
)  # fmt: skip

TARGET_CHECK = Operation(
    "check_target", ("target", "check"),
    "Check a target stage by stage; the same as health.",
    (
        _NAMED, TARGET,
        Argument("check_local_cuda", Kind.FLAG, "without a GPU host, this machine must have a GPU", True),
        *_HEALTH_OF,
    ),
    read_only=True,
    people_only=True,
    needs_workspace=False,
)  # fmt: skip

TARGET_LIST = Operation(
    "list_targets", ("target", "list"),
    "Show the described targets, and where trials run when nothing is said.",
    read_only=True,
    needs_workspace=False,
)  # fmt: skip

_TARGET_NAME = Argument("name", Kind.TEXT, "the target's name", "", positional=True)

TARGET_ADD = Operation(
    "add_target", ("target", "add"),
    "Describe a target under a name: NAME HOST, the host being one of ~/.ssh/config or USER@HOST:PORT.",
    (
        _TARGET_NAME,
        Argument("host", Kind.TEXT, "HOST, or USER@HOST:PORT", "", positional=True),
        Argument("gpu", Kind.TEXT, "index or UUID of its GPU", ""),
        Argument("scratch", Kind.TEXT, "its scratch folder; ~/.cache/kerneldeck by default", ""),
        Argument("python", Kind.TEXT, "its Python; python3 by default", ""),
        Argument("wrapper", Kind.TEXT, "words before commands: 'docker exec -i -w {cwd} {env} NAME'", ""),
        Argument("variables", Kind.TEXTS, "a variable for every trial: NAME=VALUE", (), flag="--env"),
        Argument("key_file", Kind.TEXT, "a key instead of those of ~/.ssh/config", ""),
        Argument("min_free_mb", Kind.NUMBER, "start trials with so much free there, MB; 256 by default",
                 minimum=0),
        Argument("scratch_limit_mb", Kind.NUMBER, "keep the scratch folder below, MB; 10000 by default",
                 minimum=1),
        Argument("description", Kind.TEXT, "a line for the list", ""),
        Argument("use", Kind.FLAG, "run trials there from now on", False),
        Argument("replace", Kind.FLAG, "describe it anew when it is described already", False),
    ),
    people_only=True,
    needs_workspace=False,
)  # fmt: skip

TARGET_USE = Operation(
    "use_target", ("target", "use"),
    "Run trials on this target when nothing else is said; local for this machine.",
    (_TARGET_NAME,),
    people_only=True,
    needs_workspace=False,
)  # fmt: skip

TARGET_REMOVE = Operation(
    "remove_target", ("target", "remove"),
    "Forget a described target; nothing on its machine changes.",
    (_TARGET_NAME,),
    people_only=True,
    needs_workspace=False,
)  # fmt: skip

TARGET_CLEAN = Operation(
    "clean_target", ("target", "clean"),
    "Free space in a target's scratch folder: ended trials, then the contents longest unused.",
    (
        Argument("target", Kind.TEXT, "NAME or ssh:HOST", "", positional=True),
        Argument("keep_mb", Kind.NUMBER, "keep so much of the contents, MB", 2000.0, minimum=0),
        DRY_RUN,
    ),
    people_only=True,
    needs_workspace=False,
)  # fmt: skip

BASELINE = Operation(
    "set_baseline", ("baseline",),
    "Set the record that the others of its contract are compared with; without one, show it.",
    (
        Argument("record", Kind.TEXT, "a trial's number, or the beginning of a candidate's id", None,
                 positional=True),
        Argument("clear", Kind.FLAG, "have no baseline any more", False),
    ),
    annotates=True,
    changed_by=("record", "clear"),
)  # fmt: skip

NOTE = Operation(
    "note_trial", ("note",),
    "Keep a note and tags with a trial, for people and for filters; without either, show them.",
    (
        Argument("trial", Kind.INTEGER, "its number", minimum=1, maximum=2_000_000_000, positional=True),
        Argument("text", Kind.TEXT, "the note; an empty one takes it away", None, positional=True),
        Argument("tags", Kind.TEXTS, "a word to tag it with", (), flag="--tag"),
        Argument("untags", Kind.TEXTS, "a tag to take away", (), flag="--untag"),
        Argument("clear", Kind.FLAG, "take the note and all tags away first", False),
    ),
    annotates=True,
    changed_by=("text", "tags", "untags", "clear"),
)  # fmt: skip

OPERATIONS = (
    INSPECT, RUN, REPEAT, SWEEP_CONFIG, SWEEP_RESUME, SWEEP_PAUSE, SWEEP_CONTINUE, SWEEP_STOP,
    SWEEP_CANCEL, SWEEP_MOVE, SWEEP_RETRY, VERIFY, RESTORE, RANK, APPLY, BASELINE, NOTE, RESULT, INIT, RESEAL,
    GC, UNLOCK, HEALTH, TARGET_ADD, TARGET_LIST, TARGET_USE, TARGET_REMOVE, TARGET_CHECK, TARGET_CLEAN,
)  # fmt: skip


def operation_named(operation_id: str) -> Operation | None:
    return next((operation for operation in OPERATIONS if operation.id == operation_id), None)
