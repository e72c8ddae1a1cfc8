"""Which keys do what: the registry's, with what the person's settings change, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from textual.keys import Keys, _character_to_key

from tui.actions import ACTIONS, BY_ID, PANES, SURE_WAY_OUT, UNBINDABLE, Action

# Taken by tmux, screen, flow control, job control, or the same byte as another key.
FORBIDDEN = frozenset(
    [f"ctrl+{letter}" for letter in "basczmijhwtn"]
    + ["ctrl+backslash", "ctrl+left_square_bracket", "ctrl+at", "ctrl+space"]
)
_ALIASES_ONLY = frozenset({"ctrl+q", "ctrl+p", "ctrl+enter", *(f"f{number}" for number in range(1, 25))})
_NAMES = frozenset(key.value for key in Keys)
_SHOWN = {
    "slash": "/", "colon": ":", "question_mark": "?", "at": "@", "full_stop": ".", "plus": "+",
    "space": "Space", "enter": "Enter", "escape": "Esc", "tab": "Tab", "shift+tab": "Shift+Tab",
    "pagedown": "PgDn", "pageup": "PgUp", "left": "Left", "right": "Right", "up": "Up", "down": "Down",
    "home": "Home", "end": "End",
}  # fmt: skip


def shown_key(key: str) -> str:
    """A key as people write it."""
    return _SHOWN.get(key) or "+".join(one.capitalize() if len(one) > 1 else one for one in key.split("+"))


def named_key(text: str) -> str:
    """The name of a key that a person wrote: `/` is slash."""
    text = text.strip()
    return _character_to_key(text) if len(text) == 1 else text.lower() if text.lower() in _NAMES else text


def is_known(key: str) -> bool:
    """Whether any terminal can send a key of that name."""
    modifiers, _, base = key.rpartition("+")
    if modifiers:
        return key in _NAMES
    return base in _NAMES or (len(base) == 1 and base.isprintable()) or base in _SHOWN


def why_not(key: str, first: bool) -> str:
    """Why that key cannot be bound, or cannot be an action's `first` key; empty when it can."""
    if key in FORBIDDEN or key.startswith("alt+") or "+alt+" in key:
        return f"{shown_key(key)} is taken by terminals, tmux or screen"
    if not is_known(key):
        return f"{key} is no key"
    return (
        f"{shown_key(key)} does not arrive everywhere, so it can only be an alias"
        if first and key in _ALIASES_ONLY
        else ""
    )


@dataclass(frozen=True, slots=True)
class Keymap:
    """The keys of each action by its id, and what was wrong with the person's own."""

    keys: Mapping[str, tuple[str, ...]]
    faults: tuple[str, ...] = ()

    def shown(self, action_id: str) -> str:
        """The action's key as the footer shows it; empty when it has none."""
        keys = self.keys.get(action_id, ())
        return shown_key(keys[0]) if keys else ""

    def action_of(self, key: str, pane: str) -> Action | None:
        return next((one for one in ACTIONS if pane in one.panes and key in self.keys.get(one.id, ())), None)

    def in_pane(self, pane: str) -> Iterator[Action]:
        return (action for action in ACTIONS if pane in action.panes)


DEFAULT = Keymap({action.id: action.keys for action in ACTIONS})


def keymap_of(asked: Mapping[str, object]) -> Keymap:
    """The registry's keys with those asked for; an entry that cannot be is told, and its default stays."""
    keys = dict(DEFAULT.keys)
    faults: list[str] = []
    for name, written in asked.items():
        wanted, fault = _wanted(name, written)
        if fault:
            faults.append(fault)
        else:
            keys[name] = wanted
    for name in UNBINDABLE:
        if SURE_WAY_OUT not in keys[name] and not any(SURE_WAY_OUT in of for of in keys.values()):
            keys[name] = (*keys[name], SURE_WAY_OUT)
        elif SURE_WAY_OUT not in keys[name]:
            faults.append(f"{SURE_WAY_OUT} always detaches and cannot be bound to anything else")
            return Keymap(DEFAULT.keys, tuple(faults))
    for fault, other in clashes(keys):
        faults.append(fault)
        keys[other] = DEFAULT.keys[other]
    if any(True for _ in clashes(keys)):
        return Keymap(DEFAULT.keys, tuple(faults))
    return Keymap(keys, tuple(faults))


def _wanted(name: str, written: object) -> tuple[tuple[str, ...], str]:
    if name not in BY_ID:
        return (), f"keymap: there is no action {name!r}"
    texts = written if isinstance(written, list) else [written]
    keys = tuple(named_key(text) for text in texts if isinstance(text, str) and text)
    if len(keys) != len(texts):
        return (), f"keymap: {name} wants a key or a list of keys"
    told = [why for number, key in enumerate(keys) if (why := why_not(key, number == 0))]
    return keys, f"keymap: {name}: {told[0]}" if told else ""


def clashes(keys: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """A sentence for each key that means two things in one pane, and the action that comes second."""
    told: set[tuple[str, str]] = set()
    for pane in PANES:
        owner: dict[str, str] = {}
        for action in ACTIONS:
            for key in keys[action.id] if pane in action.panes else ():
                first = owner.setdefault(key, action.id)
                if first != action.id and (key, action.id) not in told:
                    told.add((key, action.id))
                    changed = action.id if keys[action.id] != DEFAULT.keys[action.id] else first
                    yield f"keymap: {shown_key(key)} is {first} and {action.id} at once", changed
