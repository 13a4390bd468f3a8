"""The live view of a turn: a draft in private chats, an edited message in groups.

The lines of tool calls are a silent message that stays. If a send of it gets no answer, it is not
repeated: that part of the view is left out for the rest of the turn.
"""

import asyncio
import secrets
from dataclasses import astuple, replace
from itertools import accumulate
from typing import Any, NamedTuple

from telegram.error import TelegramError

from agent.store.key_values import KeyValueTable
from bot.channel import (
    DETAIL_CHARACTERS,
    MARKS,
    ChannelError,
    DeliveryUncertain,
    Keyboard,
    NotSent,
    ToolCallView,
    TurnView,
    UnfinishedViews,
    plan_steps,
)
from bot.telegram.markdown import render
from bot.telegram.message_calls import MessageCalls, parse
from bot.telegram.styled import TEXT_UNITS, Span, Styled, join, plain, prose, tail, units
from bot.texts import TEXTS

RETRY_SECONDS = 10.0
LOG_UNITS = 3500
STILL = "💭"


class LiveMessage:
    """A LiveView (bot.channel). `unfinished` stores the text that is to remain if this process is killed."""

    def __init__(self, calls: MessageCalls, chat: str, unfinished: "LiveMessageStore") -> None:
        self._calls = calls
        self._chat = chat
        self._unfinished = unfinished
        self._draft = secrets.randbelow(2**31 - 1) + 1
        self._message = ""  # the id of the silent message
        self._given_up = False  # its send got no answer
        self._stands: tuple[Styled, Keyboard] | None = None  # what it says
        self._shown = TurnView()  # what of the view it shows
        self._kept: TurnView | None = None  # what `unfinished` has of it
        self._open = True

    async def show(self, view: TurnView) -> None:
        if not (parse(self._chat).private and self._calls.drafts):
            await self._put(progress_text(view, with_calls=True), view.buttons)
            await self._keep(view)
            return
        lasting = TurnView(view.calls, plan=view.plan)
        if (changed := replace(lasting, buttons=view.buttons)) != self._shown:
            self._shown = changed
            # A draft has no buttons: they stand under the tools' lines, or under a line of their own.
            lone = plain(STILL if view.buttons and not view.stays else "")
            if self._message and not view.stays and not view.buttons:
                await self._delete()
                self._message, self._kept = "", None
            else:
                await self._put(join([lasting_text(view), lone]), view.buttons)
                await self._keep(view)
        text = progress_text(view, with_calls=self._given_up)
        if text.text:
            await self._calls.put_draft(self._chat, self._draft, text, lambda: self._open)

    def close(self, view: TurnView) -> None:
        self._open = False

    async def settle(self, view: TurnView) -> None:
        if self._message or self._given_up:
            return
        text = lasting_text(view)
        try:
            self._message = await self._calls.send_text(self._chat, text, silent=True)
        except TelegramError:
            self._given_up = True
        else:
            self._stands = text, ()

    async def finish(self, view: TurnView) -> None:
        self._open = True
        if not self._message:
            return  # what was too quick to be shown is not put behind its own answer
        if not view.stays:
            await self._delete()
        elif await self._put(lasting_text(view)):
            await self._unfinished.remove(message_key(self._chat, self._message))

    async def _delete(self) -> None:
        await self._calls.delete(self._chat, self._message)
        await self._unfinished.remove(message_key(self._chat, self._message))

    async def _put(self, text: Styled, keyboard: Keyboard = ()) -> bool:
        """Send the message or edit it; return whether it shows this now."""
        if self._given_up or not text.text:
            return False
        if self._message and self._stands == (text, keyboard):
            return True
        try:
            put = await self._calls.put_progress(
                self._chat, self._message, text, lambda: self._open, keyboard
            )
            self._message = put or self._message  # `settle` may have been quicker
        except ChannelError:
            self._given_up = not self._message
            return False
        if self._open:  # else nothing was done
            self._stands = text, keyboard
        return True

    async def _keep(self, view: TurnView) -> None:
        lasting = TurnView(view.calls, plan=view.plan)
        if self._message and self._kept != lasting:
            self._kept = lasting
            await self._unfinished.keep_view(message_key(self._chat, self._message), lasting)


class LeftMessage(NamedTuple):
    """The text that is to remain of a live message; empty: nothing."""

    text: str
    spans: list[tuple[Any, ...]]


class LiveMessageStore(UnfinishedViews[LeftMessage]):
    """UnfinishedViews whose keys come from `message_key`."""

    def __init__(self, key_values: KeyValueTable) -> None:
        super().__init__(key_values, "live:", LeftMessage)

    async def keep_view(self, key: str, view: TurnView) -> None:
        """Store a view's lasting text, with calls that still run marked as interrupted."""

        def ended(call: ToolCallView) -> ToolCallView:
            detail = "\n".join(filter(None, [call.detail, TEXTS.interrupted]))
            return replace(call, state="failed", detail=detail) if call.state == "running" else call

        calls = tuple(map(ended, view.calls))
        end = lasting_text(replace(view, calls=calls))
        await self.keep(key, LeftMessage(end.text, [astuple(span) for span in end.spans]))

    async def end_all(self, calls: MessageCalls) -> None:
        """Finish the views that a killed process left, retrying each until it succeeds or its chat is gone."""
        async with asyncio.TaskGroup() as group:
            for key, left in self.left.items():
                group.create_task(self._end(calls, key, left))

    async def _end(self, calls: MessageCalls, key: str, left: LeftMessage) -> None:
        chat, _, message = key.rpartition("/")
        text = Styled(left.text, tuple(Span(*span) for span in left.spans))
        while True:
            try:
                if text.text:
                    await calls.put_progress(chat, message, text, lambda: True)
                else:
                    await calls.delete(chat, message)
            except (NotSent, DeliveryUncertain):
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except ChannelError:
                pass  # it is gone, or its chat is
            return await self.remove(key)


def message_key(chat: str, message: str) -> str:
    return f"{chat}/{message}"


def lasting_text(view: TurnView) -> Styled:
    """The lasting text of a view: the plan, and the tools' lines below it."""
    steps = join(map(prose, plan_steps(view.plan)))
    log = tool_log(view.calls, TEXT_UNITS - units(steps.text) - 2)
    return join([steps, log], "\n\n")


def tool_log(calls: tuple[ToolCallView, ...], room: int) -> Styled:
    """The tools' lines, the newest with their output, folded, as far as it fits."""
    whole = [join([headline(call), detail(call)]) for call in calls]
    sizes = accumulate(units(line.text) for line in reversed(whole))
    short = len(calls) - sum(size < LOG_UNITS for size in sizes)
    return tail(join([*map(headline, calls[:short]), *whole[short:]]), room)


def progress_text(view: TurnView, *, with_calls: bool) -> Styled:
    """The newest part of the turn's status and text, with the tools' lines if they have no message of their own."""
    thoughts = prose(view.thoughts[-DETAIL_CHARACTERS:].strip()).within("expandable_blockquote")
    parts = [thoughts, render(view.text), prose(view.status).within("italic")]
    return tail(join([*([lasting_text(view)] if with_calls else []), *parts], "\n\n"), TEXT_UNITS)


def headline(call: ToolCallView) -> Styled:
    took = Styled(f"· {call.seconds:.1f} s" if call.seconds >= 0.1 else "")
    name, summary = plain(call.name).within("bold"), plain(call.summary).within("code")
    return join([Styled(MARKS[call.state]), name, summary, took], " ")


def detail(call: ToolCallView) -> Styled:
    """Format a detail as code, so that names and paths in it become no links or commands."""
    text = call.detail.strip()
    if len(text) > DETAIL_CHARACTERS:
        half = DETAIL_CHARACTERS // 2
        text = f"{text[:half]}\n…\n{text[-half:]}"
    return plain(text).within("code").within("expandable_blockquote")
