"""The commands about the host itself: host serve, status and stop, attach, watch, doctor."""

from __future__ import annotations

from pathlib import Path

import click

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def host_commands(workspace: click.Option) -> list[click.Command]:
    """The group `host`, and the commands beside it."""
    host = click.Group("host", help="The process that runs a workspace's work.", context_settings=CONTEXT)
    host.add_command(_serve(workspace))
    host.add_command(_status(workspace))
    host.add_command(_stop(workspace))
    return [host, _attach(workspace), _watch(workspace), _doctor(workspace)]


def _json_option() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="print one JSON object")


def _serve(workspace: click.Option) -> click.Command:
    def serve(workspace: str, ready: int) -> int:
        from sessions.host.serving import serve

        return serve(Path(workspace), ready)

    return click.Command(
        "serve", callback=serve, context_settings=CONTEXT, short_help="Be the host.",
        help="Be the workspace's host. Commands that need one start it by themselves.",
        params=[workspace, click.Option(["--ready"], type=int, default=1, hidden=True)],
    )  # fmt: skip


def _status(workspace: click.Option) -> click.Command:
    def status(workspace: str, as_json: bool) -> int:
        from kerneldeck.host_status import show_status

        return show_status(Path(workspace), as_json)

    return click.Command(
        "status", callback=status, context_settings=CONTEXT,
        help="Show whether a host runs for the workspace, what it does, and for whom.",
        params=[workspace, _json_option()],
    )  # fmt: skip


def _stop(workspace: click.Option) -> click.Command:
    def stop(workspace: str, now: bool, as_json: bool) -> int:
        from kerneldeck.host_status import stop_host

        return stop_host(Path(workspace), now, as_json)

    return click.Command(
        "stop", callback=stop, context_settings=CONTEXT,
        help="Stop the workspace's host. A detached sweep goes on with the next one.",
        short_help="Stop the workspace's host.",
        params=[
            workspace, _json_option(),
            click.Option(["--now"], is_flag=True, help="also when something runs; it is ended"),
        ],
    )  # fmt: skip


def _attach(workspace: click.Option) -> click.Command:
    def attach(workspace: str) -> int:
        from kerneldeck.watching import attach

        return attach(Path(workspace))

    return click.Command(
        "attach", callback=attach, context_settings=CONTEXT,
        help="Follow the work that runs, to its end. Ctrl-C leaves; nothing is stopped by that.",
        short_help="Follow the work that runs.", params=[workspace],
    )  # fmt: skip


def _watch(workspace: click.Option) -> click.Command:
    def watch(workspace: str, plain: bool, as_json: bool) -> int:
        from kerneldeck.watching import watch

        return watch(Path(workspace), as_json)

    return click.Command(
        "watch", callback=watch, context_settings=CONTEXT,
        help="Print one line an event, for screen readers, plain terminals and logs. Ctrl-C leaves.",
        short_help="Print one line an event.",
        params=[
            workspace,
            click.Option(["--plain"], is_flag=True, help="lines without colours (there is no other way yet)"),
            click.Option(["--json", "as_json"], is_flag=True, help="one JSON object an event"),
        ],
    )  # fmt: skip


def _doctor(workspace: click.Option) -> click.Command:
    def doctor(workspace: str, as_json: bool) -> int:
        from kerneldeck.doctor import examine

        return examine(Path(workspace), as_json)

    return click.Command(
        "doctor", callback=doctor, context_settings=CONTEXT,
        help="Look at the terminal, tmux, the folders and the SSH settings, and say what to do about each.",
        short_help="Look at what Kerneldeck works with.", params=[workspace, _json_option()],
    )  # fmt: skip
