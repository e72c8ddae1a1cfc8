"""What is sent of a picture that changed in part: the cells that changed, and no others."""

from __future__ import annotations

from rich.console import Console, RenderableType
from textual._compositor import ChopsUpdate
from textual.strip import Strip


class ChangedCells(ChopsUpdate):
    """The screen library's update, without what it sends of a line from its widget's left edge on."""

    def render_segments(self, console: Console) -> str:
        return "".join(
            f"\x1b[{y + 1};{x + 1}H{strip.render(console)}"
            for y, left, right in self.spans
            for x, strip in self._pieces(y, left, right)
        )

    def _pieces(self, y: int, left: int, right: int) -> list[tuple[int, Strip]]:
        """What lies between two columns of a line, and where each piece begins."""
        chops = zip(self.chop_ends[y], self.chops[y].items(), strict=False)
        return [
            (max(x, left), strip.crop(max(x, left) - x, min(end, right) - x))
            for end, (x, strip) in chops
            if strip is not None and x < right and end > left
        ]


def only_changed(update: RenderableType | None) -> RenderableType | None:
    """The update as it is to be sent."""
    if isinstance(update, ChopsUpdate):
        return ChangedCells(update.chops, update.spans, update.chop_ends)
    return update
