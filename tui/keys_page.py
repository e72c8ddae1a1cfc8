"""The page of keys for the documentation, made from the registry."""

from __future__ import annotations

from collections.abc import Iterator

from tui.actions import ACTIONS, PANES, Action
from tui.keymap import shown_key

_HEAD = """# Keys of the app

Made from the registry of actions (`python -m tui.keys_page > docs/keys.md`). Every key can be changed in
`~/.config/kerneldeck/tui.toml`:

```toml
[keymap]
"queue.pause" = "P"
"view.zoom" = ["Z", "plus"]
```

`q` always detaches, and nothing that runs stops by it. Keys that change anything beyond the screen are marked
with *; `kerneldeck tui --readonly` has none of them.
"""


def keys_page() -> str:
    """The page, in Markdown."""
    parts = [_HEAD, *_table("In every pane", [one for one in ACTIONS if one.panes == PANES])]
    for pane in PANES:
        parts += _table(
            f"{pane.capitalize()}", [one for one in ACTIONS if one.panes != PANES and pane in one.panes]
        )
    return "\n".join(parts) + "\n"


def _table(title: str, actions: list[Action]) -> Iterator[str]:
    if not actions:
        return
    yield f"## {title}\n"
    yield "| key | action | what | command line |\n|---|---|---|---|"
    for one in actions:
        keys = " ".join(f"`{shown_key(key)}`" for key in one.keys)
        verb = f"`{one.verb}`" if one.verb else ""
        yield f"| {keys}{' *' if one.changes else ''} | `{one.id}` | {one.doc} | {verb} |"
    yield ""


if __name__ == "__main__":
    print(keys_page(), end="")
