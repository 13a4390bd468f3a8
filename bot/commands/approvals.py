"""Approvals: owners are asked with buttons, the first press counts, the question then says who decided."""

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO

from agent.approvals import ApprovalRequest
from agent.events import Decision
from agent.sandbox.output_buffer import visible
from agent.store.approvals import WITHDRAWN, ApprovalTable, Grant
from agent.trust import asks
from bot.channel import (
    Button,
    Channel,
    ChannelError,
    DeliveryUncertain,
    Keyboard,
    NamedFile,
    OutgoingMessage,
    send,
)
from bot.commands.access import Access
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.texts import Texts

APPROVAL = "ok"
REVOKE = "rev"
DECISIONS: dict[str, Decision] = {"o": "once", "c": "chat", "d": "denied"}  # by a key's last letter
SHOWN_CHARACTERS = 3000  # of a command or a diff; of a longer one the beginning and the end
SHOWN_END = 1000
SHOWN_LINES, SHOWN_SPACES = 4, 80  # empty ones in a row; of more their number is shown
ATTEMPTS = 3
LABEL_CHARACTERS = 60
SHOWN_GRANTS = 20
BLANK_LINES = re.compile(rf"\n(?:[ ⇥\t]*\n){{{SHOWN_LINES},}}")
BLANKS = re.compile(rf"[ ⇥\t]{{{SHOWN_SPACES},}}")


@dataclass(frozen=True)
class OwnerApprovals:
    """Asks owners in their chats (agent.approvals.AskOwners); the answer comes by `press_approval`."""

    channel: Channel
    access: Access
    texts: Texts
    approvals: ApprovalTable

    async def ask(self, request: ApprovalRequest) -> Decision | None:
        if await self.approvals.message_of(request.id):
            return None  # asked before a restart: those buttons still work
        sent: list[str] = []
        for chat in self._chats(request.chat):
            try:
                message = await self._send(chat, request)
            except ChannelError:
                continue  # an owner who has blocked us; the others still read it
            sent.append(f"{chat}/{message}")
            await self.approvals.shown(request.id, " ".join(sent))
        return None if sent else "denied"

    def _chats(self, chat: str) -> list[str]:
        """The chat itself where an owner reads it, and else the owners' own chats."""
        private = [self.channel.private_chat(owner) for owner in sorted(self.access.owners)]
        if not chat.startswith(self.channel.prefix):
            return private
        user = self.channel.user_of(chat)
        if user is None:
            return [chat, *private]
        return [chat] if user in self.access.owners else private

    async def _send(self, chat: str, request: ApprovalRequest) -> str:
        """Two copies of one question are harmless, a missing one is not."""
        text = question(self.texts, request, elsewhere=chat != request.chat)
        message = OutgoingMessage(text, approval_keyboard(self.texts, request))
        for attempt in range(ATTEMPTS):
            try:
                await send_whole(self.channel, chat, self.texts, request)
                return (await send(self.channel, chat, message))[-1]
            except DeliveryUncertain:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError


def question(texts: Texts, request: ApprovalRequest, *, elsewhere: bool) -> str:
    """What an owner is asked; `elsewhere`: in another chat than the request's."""
    where = texts.approval_from.format(chat=visible(request.chat)) if elsewhere else ""
    told = texts.approval_touched.format(because=request.because) if request.because else ""
    once, always = texts.approve_once, texts.approve_chat
    covers = texts.approval_covers.format(once=once, always=always, scope=code(request.scope))
    shown = fenced(excerpt(texts, request.what))
    return "\n\n".join(filter(None, [f"{texts.approval}{where}", shown, told or covers]))


async def send_whole(channel: Channel, chat: str, texts: Texts, request: ApprovalRequest) -> None:
    """Where the question cannot show all of it: the exact bytes as a file and, where those hold
    characters that are not seen, the text with their codes beside it. Raises ChannelError."""
    seen = with_tabs(request.what)
    if excerpt(texts, request.what) == seen:
        return
    whole = request.what.encode("utf-8", "surrogatepass")
    files: list[NamedFile] = [(BytesIO(whole), "approval.txt")]
    if visible(request.what) != request.what:
        files.append((BytesIO(seen.encode()), "approval-codes.txt"))
    caption = texts.approval_whole.format(count=len(request.what))
    await channel.send_files(chat, files, caption)


def excerpt(texts: Texts, what: str) -> str:
    """What a question shows: all of it, or the beginning and the end with a count of the rest."""
    text = with_tabs(what)
    text = BLANK_LINES.sub(lambda m: f"\n⟨{m[0].count(chr(10)) - 1:,} empty lines⟩\n", text)
    text = BLANKS.sub(lambda m: f"⟨{len(m[0]):,} spaces⟩", text)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    rest = text[SHOWN_CHARACTERS - SHOWN_END : -SHOWN_END]
    more = texts.approval_cut.format(more=len(rest), lines=rest.count("\n") + 1)
    return f"{text[: SHOWN_CHARACTERS - SHOWN_END]}\n{more}\n{text[-SHOWN_END:]}"


def with_tabs(what: str) -> str:
    """As `visible`, with a sign before each tab."""
    return visible(what).replace("\t", "⇥\t")


def fenced(code: str) -> str:
    """A code block with a fence that nothing in the code can close."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}\n{code}\n{fence}"


def code(scope: str) -> str:
    """A permission's scope as inline code that nothing in it can close."""
    shown = visible(scope).replace("`", "⟨U+0060⟩").replace("\n", "⟨U+000A⟩")
    return f"`{shown}`"


def approval_keyboard(texts: Texts, request: ApprovalRequest) -> Keyboard:
    """Nothing is allowed for good in a chat that strangers' text has touched, nor what always asks."""
    once, always, deny = (
        Button(f"{APPROVAL}:{request.id}:{letter}", label)
        for letter, label in zip(
            DECISIONS, (texts.approve_once, texts.approve_chat, texts.deny), strict=True
        )
    )
    lasting = not request.because and asks(request.scope, touched=False) != "always"
    return [[once, deny], [always]] if lasting else [[once, deny]]


def decision(key: str) -> tuple[str, Decision | None]:
    """The request's id and the decision of a button's key."""
    id, _, letter = key.removeprefix(f"{APPROVAL}:").rpartition(":")
    return id, DECISIONS.get(letter)


async def press_approval(context: HandlerContext, press: ButtonPress) -> PressResult:
    id, decided = decision(press.argument)
    approvals = context.services.approvals
    if approvals is None or decided is None:
        return PressResult(context.texts.expired)
    if await approvals.decide(id, decided, press.sender.name) is None:
        return PressResult(context.texts.expired)
    context.start(show_decision(context, id))
    return PressResult(context.texts.decided[decided])


async def show_decision(context: HandlerContext, id: str) -> None:
    """The messages of a question lose their buttons and say what was decided."""
    table = context.store.approvals
    decided, request = await table.decided(id), await table.get(id)
    if decided is None or request is None:
        return
    state, by, at = decided
    form = context.texts.decisions[by if by in ("expired", WITHDRAWN) else state]
    for shown in (await table.message_of(id)).split():
        chat, _, message = shown.rpartition("/")
        told = form.format(by=visible(by), at=f"{await context.local_time(chat, at):%H:%M}")
        text = f"{fenced(excerpt(context.texts, request.what))}\n\n{told}"
        try:
            await context.channel.edit(chat, message, text)
        except ChannelError:
            continue


async def show_withdrawn(context: HandlerContext, turn: str) -> None:
    """The same for what a turn that was stopped had asked."""
    for id in await context.store.approvals.withdrawn(turn):
        await show_decision(context, id)


async def approve(context: HandlerContext, call: CommandCall) -> None:
    """/approve: open questions are asked again; standing permissions can be taken back."""
    texts = context.texts
    for request in await context.store.approvals.open_requests():
        with suppress(ChannelError):  # without the whole of it the question is not asked again
            await send_whole(context.channel, call.chat, texts, request)
            text = question(texts, request, elsewhere=request.chat != call.chat)
            await context.send(call.chat, text, approval_keyboard(texts, request))
    grants = await context.store.approvals.grants(call.chat)
    await context.send(call.chat, *grant_list(texts, grants))


async def press_revoke(context: HandlerContext, press: ButtonPress) -> PressResult:
    for grant in await context.store.approvals.grants(press.chat):
        if scope_digest(grant.scope) == press.argument:
            await context.store.approvals.revoke(press.chat, grant.scope, press.sender.name)
    left = await context.store.approvals.grants(press.chat)
    return PressResult("", *grant_list(context.texts, left))


def grant_list(texts: Texts, grants: Sequence[Grant]) -> tuple[str, Keyboard]:
    if not grants:
        return texts.no_grants, []
    lines = "\n".join(f"- {code(grant.scope)} ({visible(grant.granted_by)})" for grant in grants)
    keyboard = [
        [Button(f"{REVOKE}:{scope_digest(g.scope)}", f"✕ {g.scope}"[:LABEL_CHARACTERS])]
        for g in grants[:SHOWN_GRANTS]
    ]
    return texts.grants.format(grants=lines), keyboard


def scope_digest(scope: str) -> str:
    """A scope as a button's key can hold it."""
    return hashlib.sha256(scope.encode()).hexdigest()[:12]
