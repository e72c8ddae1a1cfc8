"""Faults of our own while a message is handled: told on the screen, and no reason to leave it."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.message_pump import MessagePump

_AT_FIRST = (events.Compose, events.Mount)  # without these there is nothing to go on with


class Sturdy(MessagePump):
    """Of whatever has it as its first base, handlers that fail are told by the app's `tell_fault`."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            tell = getattr(self.app, "tell_fault", None)
            if tell is None or isinstance(message, _AT_FIRST):
                raise
            tell(error)
