"""The command `kerneldeck`: dispatch, nothing else."""

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; exits with the operation's exit code."""
    from kerneldeck.cli import run

    code = run(sys.argv[1:])
    if code == _INTERRUPTED:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """End with this code, surely.

    An interrupt inside `exec`, by which every dataclass is made, lets CPython end itself by the signal at
    last, also where it was caught and answered.
    """
    import os
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody listens any more
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
