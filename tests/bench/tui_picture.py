"""What stands on the screen after all that the app wrote to it."""

from __future__ import annotations

import re


class Picture:
    """What stands on a screen of 80x24; only changed cells are sent, so the last bytes do not say it."""

    def __init__(self) -> None:
        self.rows = [[" "] * 80 for _ in range(24)]
        self._at = self._y = self._x = 0

    def after(self, written: bytes) -> str:
        """The screen after all that; a picture ends with a move, so one that is not whole yet waits."""
        whole = max((move.end() for move in _MOVE.finditer(written, self._at)), default=self._at)
        for sign in _SIGNS.finditer(written[self._at : whole].decode()):
            if sign["row"]:
                self._y, self._x = int(sign["row"]) - 1, int(sign["column"]) - 1
            elif sign["end"]:
                self._y, self._x = self._y + 1, 0
            elif sign["text"] and self._y < 24 and self._x < 80:
                self.rows[self._y][self._x] = sign["text"]
                self._x += 1
        self._at = whole
        return "\n".join("".join(row) for row in self.rows)


_MOVE = re.compile(rb"\x1b\[\d+;\d+H")
_SIGNS = re.compile(
    r"\x1b\[(?P<row>\d+);(?P<column>\d+)H|(?P<end>\r\n)|\x1b\[[?<>=\d;$]*[a-zA-Z]|\x1b.|(?P<text>[^\x00-\x1f])"
)
