"""Buttons, which Matrix does not have: numbers under a message, pressed by a reaction or a reply.

Which button a number stands for is kept by the message's id, beyond restarts.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent.store.key_values import KeyValueTable
from bot.approval_question import APPROVAL, DECISIONS
from bot.channel import Button, Keyboard
from bot.texts import TEXTS

KEY_PREFIX = "matrix-buttons:"
KEPT_SECONDS = 30 * 86_400.0
NUMBERS = ("1️⃣", "2️⃣", "3️⃣", "4️⃣", "5️⃣", "6️⃣", "7️⃣", "8️⃣", "9️⃣", "🔟")
YES, NO = ("👍", "✅", "✔"), ("👎", "❌", "✖")
DECIDED_BY = {"once": YES, "denied": NO}


class KeptKeyboard(NamedTuple):
    """The stored buttons of a message.

    `chat` is the key under which its message was sent; `at` in seconds since the epoch.
    """

    chat: str
    buttons: list[tuple[str, str]]
    at: float


def flat(keyboard: Keyboard) -> list[Button]:
    return [button for row in keyboard for button in row]


def with_buttons(text: str, keyboard: Keyboard) -> str:
    """The text with the buttons' labels below."""
    buttons = flat(keyboard)
    if not buttons:
        return text
    lines = [f"{mark(number)} {button.label}" for number, button in enumerate(buttons)]
    return "\n\n".join([text, "\n".join(lines), TEXTS.buttons_how])


def mark(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else f"**{number + 1}**"


def offered(keyboard: Keyboard) -> list[str]:
    """The reactions to put under an approval question, so that one tap answers it."""
    buttons = flat(keyboard)
    asks = any(button.key.startswith(f"{APPROVAL}:") for button in buttons)
    return list(NUMBERS[: len(buttons)]) if asks else []


def chosen_button(said: str, buttons: Sequence[tuple[str, str]]) -> str | None:
    """Return the key of the button that a reaction or a reply's text selects, or None."""
    said = said.replace("\ufe0f", "").strip().casefold()
    for number, (key, label) in enumerate(buttons):
        names = {str(number + 1), label.casefold(), mark(number).replace("\ufe0f", "")}
        kind, _, letter = key.rpartition(":")
        if kind.startswith(f"{APPROVAL}:"):
            names |= set(DECIDED_BY.get(DECISIONS.get(letter, ""), ()))
        if said in names:
            return key
    return None


@dataclass(frozen=True)
class KeyboardStore:
    key_values: KeyValueTable

    async def keep(self, message: str, chat: str, keyboard: Keyboard) -> None:
        """Store the buttons of a message; delete them if it has none."""
        if keyboard:
            buttons = [(button.key, button.label) for button in flat(keyboard)]
            await self.key_values.put(KEY_PREFIX + message, [chat, buttons, time.time()])
        else:
            await self.key_values.remove(KEY_PREFIX + message)

    async def of(self, message: str) -> KeptKeyboard | None:
        return await self.key_values.get(KEY_PREFIX + message, KeptKeyboard)

    async def prune(self) -> None:
        kept = await self.key_values.with_prefix(KEY_PREFIX, KeptKeyboard)
        for key, keyboard in kept.items():
            if keyboard.at < time.time() - KEPT_SECONDS:
                await self.key_values.remove(key)
