"""The live view of a turn: one event, edited at the homeserver's pace.

It is silent. The lines of tool calls stay; if there are none, the event is deleted once the answer is sent. A
quick answer has no event: only that the bot is typing is shown.
"""

import logging
import re
import time
import uuid
from contextlib import suppress
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.leaks import LeakDetector
from agent.store.errors import StoreError
from agent.store.key_values import KeyValueTable
from bot.approval_question import code
from bot.channel import (
    DETAIL_CHARACTERS,
    MARKS,
    ChannelError,
    Keyboard,
    ToolCallView,
    TurnView,
    UnfinishedViews,
    plan_steps,
    refuse_secret,
)
from bot.markdown_dialect import as_html, html_renderer
from bot.matrix.keyboards import with_buttons
from bot.texts import TEXTS

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML

    from bot.matrix.channel import MatrixChannel

PART_BYTES = 12_000  # of Markdown; an event has 65,536, encrypted and with its HTML
HTML_BYTES = 30_000
FENCE_BYTES = 40
FENCE = re.compile(rf"^ {{0,3}}(`{{3,{FENCE_BYTES}}}|~{{3,{FENCE_BYTES}}})")


def message_content(text: str, kind: str = "m.text") -> dict[str, Any]:
    """The content of an m.room.message."""
    content: dict[str, Any] = {"msgtype": kind, "body": text}
    html = as_html(text, renderer())
    if html != f"<p>{escape(text, quote=False)}</p>" and len(html.encode()) <= HTML_BYTES:
        content |= {"format": "org.matrix.custom.html", "formatted_body": html}
    return content


@cache
def renderer() -> "RendererHTML":
    return html_renderer({"spoiler_open": "<span data-mx-spoiler>", "spoiler_close": "</span>"})


def split(text: str, most: int = PART_BYTES) -> list[str]:
    """Split a text into parts of at most so many bytes of UTF-8, between paragraphs, else lines, else words; a block
    of code that is cut is closed and opened again."""
    parts: list[str] = []
    while len(text.encode()) > most:
        head = text.encode()[: most - FENCE_BYTES - 1].decode("utf-8", "ignore")
        found = ((head.rfind(mark, len(head) // 2), mark) for mark in ("\n\n", "\n", " "))
        cut = next((at + len(mark) for at, mark in found if at >= 0), len(head))
        part, rest = text[:cut].strip("\n"), text[cut:].lstrip("\n")
        fence = open_fence(part)
        parts.append(f"{part}\n{fence}" if fence else part)
        text = f"{fence}\n{rest}" if fence else rest
    return [part for part in (*parts, text.strip("\n")) if part.strip()] or [text]


def open_fence(text: str) -> str:
    """Return the mark that closes the block of code in which the text ends; "" where it ends in none."""
    fence = ""
    for line in text.split("\n"):
        mark = found[1] if (found := FENCE.match(line)) else ""
        if not fence:
            fence = mark
        elif mark.startswith(fence) and line.strip() == mark:
            fence = ""
    return fence


log = logging.getLogger(__name__)

QUIET_SECONDS = 3.0  # of a turn without tools, before anything is shown
TEXT_CHARACTERS = 6000  # the newest of a growing answer
THOUGHT_CHARACTERS = 500
LOG_LINES = 40


class LeftEvent(NamedTuple):
    """A live event that an ended process may leave. `log` is what is to remain of a live event; empty: nothing."""

    chat: str
    log: str


class LiveEvent:
    """A LiveView (bot.channel). `unfinished` stores the text that is to remain if this process is killed."""

    def __init__(
        self,
        channel: "MatrixChannel",
        chat: str,
        unfinished: "LiveEventStore",
        leaks: LeakDetector,
    ) -> None:
        self._channel = channel
        self._chat = chat
        self._unfinished = unfinished
        self._leaks = leaks
        self._event = ""
        self._transaction = uuid.uuid4().hex  # of its first send, which may be repeated
        self._stands = ""
        self._kept: str | None = None
        self._buttons: Keyboard = ()  # those that can be pressed
        self._open = True
        self._began = time.monotonic()

    async def show(self, view: TurnView) -> None:
        quiet = time.monotonic() - self._began < QUIET_SECONDS
        if self._open and (view.stays or self._event or not quiet):
            await self._put(progress_text(view), view.buttons)
            await self._keep(view)

    def close(self, view: TurnView) -> None:
        self._open = False

    async def settle(self, view: TurnView) -> None:
        """Send only what was not sent yet, as the answer waits; `finish` updates the rest."""
        if view.stays and not self._event:
            with suppress(ChannelError):
                text = lasting_text(view)
                refuse_secret(self._leaks, text)
                content = message_content(text, "m.notice")
                self._event = await self._channel.send_content(
                    self._chat, content, self._transaction
                )
                self._stands = text

    async def finish(self, view: TurnView) -> None:
        self._open = True
        if not self._event:
            return
        ended = await (self._put(lasting_text(view)) if view.stays else self._redact())
        await self._offer(())
        if ended:
            await self._unfinished.remove(self._event)

    async def _put(self, text: str, keyboard: Keyboard = ()) -> bool:
        """Send the event or edit it; return whether it shows this now."""
        if self._event:  # what is not sent yet has no id that buttons could be kept by
            text = with_buttons(text, keyboard)
        if not text or text == self._stands:
            return bool(text)
        await self._offer(keyboard)
        try:
            refuse_secret(self._leaks, text)
            content = message_content(text, "m.notice")
            self._event = await self._channel.put_progress(
                self._chat, self._event, content, lambda: self._open, self._transaction
            )
        except ChannelError:
            return False
        if self._open:
            self._stands = text
        return True

    async def _offer(self, keyboard: Keyboard) -> None:
        """Make these the buttons that can be pressed. StoreError and ChannelError are logged."""
        if not self._event or keyboard == self._buttons:
            return
        try:
            await self._channel.keep_keyboard(self._chat, self._event, keyboard)
        except (ChannelError, StoreError) as error:
            log.warning("the buttons of a live message of %s are not kept: %s", self._chat, error)
        else:
            self._buttons = keyboard

    async def _redact(self) -> bool:
        try:
            await self._channel.redact(self._chat, self._event)
        except ChannelError:
            return False
        return True

    async def _keep(self, view: TurnView) -> None:
        if self._event and self._kept != (left := lasting_text(view)):
            self._kept = left
            await self._unfinished.keep(self._event, LeftEvent(self._chat, left))


class LiveEventStore(UnfinishedViews[LeftEvent]):
    """UnfinishedViews whose keys are event ids."""

    def __init__(self, key_values: KeyValueTable) -> None:
        super().__init__(key_values, "matrix-live:", LeftEvent)

    async def end_all(self, channel: "MatrixChannel") -> None:
        """Finish the views that a killed process left; those that fail are tried again at the next start."""
        await channel.synced.wait()
        for event, (chat, lasting) in self.left.items():
            try:
                if lasting:
                    text = f"{lasting}\n\n{TEXTS.interrupted}"
                    await channel.replace_event(chat, event, message_content(text, "m.notice"))
                else:
                    await channel.redact(chat, event)
            except ChannelError as error:
                log.warning("a live message of %s stays as it was: %s", chat, error)
            else:
                await self.remove(event)


def lasting_text(view: TurnView) -> str:
    """The lasting text of a view: the plan, and the tools' lines below it."""
    calls = map(headline, view.calls[-LOG_LINES:])
    return "\n\n".join(filter(None, ["\n".join(plan_steps(view.plan)), "\n".join(calls)]))


def progress_text(view: TurnView) -> str:
    """The newest part of the turn's status, thoughts and text."""
    thoughts = view.thoughts.strip()[-THOUGHT_CHARACTERS:]
    detail = view.calls[-1].detail.strip()[-DETAIL_CHARACTERS:] if view.calls else ""
    fence = "`" * 3 if "```" not in detail else "~" * 5
    parts = [
        lasting_text(view),
        f"{fence}\n{detail}\n{fence}" if detail else "",
        "\n".join(f"> {line}" for line in thoughts.splitlines()),
        view.text[-TEXT_CHARACTERS:],
        f"*{view.status}*" if view.status else "",
    ]
    return "\n\n".join(filter(None, parts))


def headline(call: ToolCallView) -> str:
    took = f" · {call.seconds:.1f} s" if call.seconds >= 0.1 else ""
    return f"{MARKS[call.state]} **{call.name}** {code(call.summary) if call.summary else ''}{took}"
