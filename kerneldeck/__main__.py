"""The command `kerneldeck`: dispatch, nothing else."""

import sys


def main() -> None:
    """Run the command line; exits with the operation's exit code."""
    from kerneldeck.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
