"""The message that another one answers, as the model is shown it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bot.attachments import Attachment

LONGEST = 4096  # characters: a whole message of Telegram's
LONGEST_OURS = 600  # of what the bot has said itself
CUT = " […]"


class Quotation(NamedTuple):
    """`name` is who said it, as they call themselves, or ""; `ours`: that is the bot."""

    name: str
    text: str
    ours: bool = False
    files: Sequence[Attachment] = ()

    @property
    def line(self) -> str:
        limit = LONGEST_OURS if self.ours else LONGEST
        text = self.text if len(self.text) <= limit else self.text[:limit].rstrip() + CUT
        names = ", ".join(file.name for file in self.files)
        quote = " ".join(filter(None, [text, names and f"[{names}]"]))
        return ": ".join(filter(None, [self.name, quote])) if quote else ""

    @property
    def attachments(self) -> list[Attachment]:
        """Its files, to be fetched with the answer's own; the bot knows those that it has sent."""
        return [] if self.ours else [replace(file, answered=True) for file in self.files]
