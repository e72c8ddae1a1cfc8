"""Rows of what people say of the records: the baseline of each contract, and a note and tags for a trial."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ArgumentFault
from core.records import Baseline, TrialNote
from sessions.database import SqlValue, insert
from sessions.rows import Rows

LONGEST_NOTE, LONGEST_TAG, MOST_TAGS = 200, 32, 16  # characters, characters, tags of a trial


class AnnotationRows(Rows):
    """Baselines and notes. They change no trial, and nothing that is decided depends on them."""

    def baseline(self, contract_id: str) -> Baseline | None:
        """The baseline that stands for the contract, with its candidate's scores as they are now."""
        row = self.database.row(
            "SELECT b.since_s, t.id, t.candidate_id, t.mode FROM baselines b JOIN trials t"
            " ON t.id = b.trial_id WHERE b.id = (SELECT MAX(id) FROM baselines WHERE contract_id = ?)",
            (contract_id,),
        )
        if row is None:
            return None
        scores = self.medians(contract_id, row["candidate_id"])
        return Baseline(row["id"], row["candidate_id"], contract_id, row["mode"], scores, row["since_s"])

    def baseline_trial(self, contract_id: str) -> int | None:
        """The trial that is the contract's baseline."""
        row = self.database.row(
            "SELECT trial_id FROM baselines WHERE contract_id = ? ORDER BY id DESC LIMIT 1", (contract_id,)
        )
        return None if row is None else row["trial_id"]

    def set_baseline(self, contract_id: str, trial_id: int | None) -> None:
        """Make the trial the contract's baseline; None: it has none any more."""
        values: dict[str, SqlValue] = {
            "contract_id": contract_id, "trial_id": trial_id, "since_s": self.clock(),
        }  # fmt: skip
        with self.database.transaction("store the baseline") as connection:
            insert(connection, "baselines", values)

    def medians(self, contract_id: str, candidate_id: str) -> dict[str, float]:
        """A candidate's median score by mode."""
        sql = "SELECT mode, median FROM standings WHERE contract_id = ? AND candidate_id = ?"
        return {row["mode"]: row["median"] for row in self.database.rows(sql, (contract_id, candidate_id))}

    def note(self, trial_id: int) -> TrialNote:
        row = self.database.row("SELECT text, tags FROM notes WHERE trial_id = ?", (trial_id,))
        return TrialNote() if row is None else TrialNote(row["text"], tags_of(row["tags"]))

    def put_note(self, trial_id: int, note: TrialNote) -> None:
        """Keep the note in place of the trial's earlier one."""
        tags = f" {' '.join(note.tags)} " if note.tags else ""
        with self.database.transaction("store the note") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO notes (trial_id, text, tags, at_s) VALUES (?, ?, ?, ?)",
                (trial_id, note.text, tags, self.clock()),
            )

    def scored_trial(self, beginning: str, contract_id: str, mode: str) -> int | None:
        """The newest trial with a score of the only candidate whose id begins so (hexadecimal digits).

        One of the contract comes before others, then one in that mode. ArgumentFault: several candidates.
        """
        until = beginning + "g"  # after every id that begins so
        found = self.database.rows(
            "SELECT DISTINCT candidate_id FROM trials WHERE candidate_id >= ? AND candidate_id < ? LIMIT 2",
            (beginning, until),
        )
        if len(found) > 1:
            raise ArgumentFault(f"several candidates begin with {beginning}", "write more of the id")
        row = self.database.row(
            "SELECT id FROM trials WHERE candidate_id >= ? AND candidate_id < ? AND status = 'ok'"
            " AND score IS NOT NULL ORDER BY contract_id = ? DESC, mode = ? DESC, id DESC LIMIT 1",
            (beginning, until, contract_id, mode),
        )
        return None if row is None else row["id"]


def tags_of(written: str) -> tuple[str, ...]:
    return tuple(written.split())


def note_line(tags: Sequence[str], text: str) -> str:
    """`[tag tag] note`: what people keep with a trial, in a line; empty for nothing."""
    return f"{f'[{chr(32).join(tags)}]' if tags else ''} {text}".strip()


def note_text(text: str) -> str:
    """`text` as a note; ArgumentFault when it is longer than a line may be, or would steer a terminal."""
    text = text.strip()
    if not text.isprintable():
        raise ArgumentFault(
            "a note is one line of printable text", "leave line breaks and control characters out"
        )
    if len(text) > LONGEST_NOTE:
        raise ArgumentFault(
            f"a note has at most {LONGEST_NOTE} characters, this has {len(text)}", "keep the rest in a file"
        )
    return text


def tag_word(word: str) -> str:
    """`word` as a tag; ArgumentFault when it is none."""
    if not word or not word.isprintable() or " " in word or "," in word:
        raise ArgumentFault(
            f"{word[:LONGEST_TAG]!r} is no tag", "a tag is one printable word without a comma: --tag fp8"
        )
    if len(word) > LONGEST_TAG:
        raise ArgumentFault(f"a tag has at most {LONGEST_TAG} characters", "say the rest in the note")
    return word


def with_tags(tags: tuple[str, ...], added: tuple[str, ...], removed: tuple[str, ...]) -> tuple[str, ...]:
    """The tags after that, in the order in which they came; ArgumentFault when they are too many."""
    left = dict.fromkeys(tag for tag in (*tags, *added) if tag not in removed)
    if len(left) > MOST_TAGS:
        raise ArgumentFault(f"a trial has at most {MOST_TAGS} tags", "take one away with --untag")
    return tuple(left)


def not_compared(baseline: Baseline | None, mode: str) -> str:
    """Why nothing in that mode compares with the baseline; empty where it does, or where there is none."""
    if baseline is None or mode in baseline.scores:
        return ""
    return (
        f"baseline #{baseline.trial_id} has no score in {mode}, only in {', '.join(sorted(baseline.scores))}"
    )
