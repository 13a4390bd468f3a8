"""Asks owners to approve a tool call: whom to ask, the question with its buttons, and the full text as a file."""

import asyncio
import re
from dataclasses import dataclass
from io import BytesIO

from agent.approvals import ApprovalRequest
from agent.events import Decision
from agent.language import speaking
from agent.sandbox.output_buffer import visible
from agent.store import Store
from agent.trust import asks
from bot.access import Access
from bot.channel import (
    Button,
    Channel,
    ChannelError,
    DeliveryUncertain,
    Keyboard,
    NamedFile,
    NotSent,
    OutgoingMessage,
    send,
)
from bot.texts import TEXTS

APPROVAL = "ok"
DECISIONS: dict[str, Decision] = {"o": "once", "c": "chat", "d": "denied"}  # by a key's last letter
SHOWN_CHARACTERS = 3000  # of a command or a diff; of a longer one the beginning and the end
SHOWN_END = 1000
SHOWN_LINES, SHOWN_SPACES = 4, 80  # empty ones in a row; of more only the count is shown
ATTEMPTS = 3
NAMED_OWNERS = 3
BLANK_LINES = re.compile(rf"\n(?:[ ⇥\t]*\n){{{SHOWN_LINES},}}")
BLANKS = re.compile(rf"[ ⇥\t]{{{SHOWN_SPACES},}}")


@dataclass(frozen=True)
class OwnerApprovals:
    """Asks owners in their chats (agent.approvals.AskOwners); `press_approval` gets the answer."""

    channel: Channel
    access: Access
    store: Store

    async def ask(self, request: ApprovalRequest) -> Decision | None:
        if await self.store.approvals.message_of(request.id):
            return None  # asked before a restart; those buttons still work
        sent: list[str] = []
        for chat in self._chats(request.chat):
            try:
                message = await self._send(chat, request)
            except ChannelError:
                continue  # an owner who has blocked us; another may answer
            sent.append(f"{chat}/{message}")
            await self.store.approvals.shown(request.id, " ".join(sent))
        return None if sent else "denied"

    async def whom(self, chat: str) -> str:
        """Describe, to the people of a chat, who is asked on its behalf."""
        user = self.channel.user_of(chat)
        if user in self.access.owners:
            return TEXTS.you
        if not 0 < len(self.access.owners) <= NAMED_OWNERS:
            return TEXTS.an_owner
        owners = [self.channel.private_chat(owner) for owner in sorted(self.access.owners)]
        names = [visible(await self.channel.name(owner)) for owner in owners]
        return TEXTS.or_.join(name or TEXTS.an_owner for name in dict.fromkeys(names))

    def _chats(self, chat: str) -> list[str]:
        """Where to ask: in the chat itself where an owner may read it, else, or also, in the owners' own chats."""
        private = [self.channel.private_chat(owner) for owner in sorted(self.access.owners)]
        if not chat.startswith(self.channel.prefix):
            return private
        user = self.channel.user_of(chat)
        if user is None:
            return [chat, *private]
        return [chat] if user in self.access.owners else private

    async def _send(self, chat: str, request: ApprovalRequest) -> str:
        """The message's id. An uncertain send is repeated: two copies of a question are harmless, a missing
        one is not."""
        with speaking(await self.store.chats.spoken(chat)):
            where = await asked_in(self.channel, request, chat)
            text = question(request, where)
            keyboard = approval_keyboard(request)
            message = OutgoingMessage(text, keyboard, transaction=f"approval-{request.id}-{chat}")
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    await send_whole(self.channel, chat, request)
                    return (await send(self.channel, chat, message))[-1]
                except DeliveryUncertain:
                    if attempt == ATTEMPTS:
                        raise
                except NotSent as error:  # too fast: the app says when to ask again
                    if attempt == ATTEMPTS or not error.after:
                        raise
                    await asyncio.sleep(error.after)
        raise AssertionError


async def asked_in(channel: Channel, request: ApprovalRequest, chat: str) -> str:
    """The name of the request's chat; "" if the question is shown in that chat."""
    if request.chat == chat:
        return ""
    if not request.chat.startswith(channel.prefix):
        return TEXTS.terminal.format(chat=visible(request.chat))
    return code(await channel.name(request.chat) or request.chat)


def question(request: ApprovalRequest, where: str = "") -> str:
    """The question's text; `where` names the request's chat (`asked_in`)."""
    where = TEXTS.approval_from.format(chat=where) if where else ""
    shown, more = fenced(excerpt(request.what)), ""
    if request.because:
        # A stranger has chosen the names in it.
        more = TEXTS.approval_touched.format(because=code(request.because))
    elif may_last(request.scope, request.because):
        once, always = TEXTS.approve_once, TEXTS.approve_chat
        more = TEXTS.approval_covers.format(once=once, always=always, scope=code(request.scope))
    return "\n\n".join(filter(None, [f"{TEXTS.approval}{where}", shown, more]))


def may_last(scope: str, because: str) -> bool:
    """Whether it may be allowed for good: never in a tainted chat, nor for steps that must always ask."""
    return not because and asks(scope, touched=False) not in ("always", "once")


async def send_whole(channel: Channel, chat: str, request: ApprovalRequest) -> None:
    """Send the exact bytes as a file where the question shows only a part, with a second file where some
    characters are invisible, which has their codes instead. Raises ChannelError."""
    seen = with_tabs(request.what)
    if excerpt(request.what) == seen:
        return
    whole = request.what.encode("utf-8", "surrogatepass")
    files: list[NamedFile] = [(BytesIO(whole), "approval.txt")]
    if visible(request.what) != request.what:
        files.append((BytesIO(seen.encode()), "approval-codes.txt"))
    caption = TEXTS.approval_whole.format(count=len(request.what))
    await channel.send_files(chat, files, caption)


def excerpt(what: str, cut: str = "") -> str:
    """Return the text to show in the question: all, or beginning and end with the number of omitted characters, in the form `cut`."""
    text = with_tabs(what)
    text = BLANK_LINES.sub(lambda m: f"\n⟨{m[0].count(chr(10)) - 1:,} empty lines⟩\n", text)
    text = BLANKS.sub(lambda m: f"⟨{len(m[0]):,} spaces⟩", text)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    rest = text[SHOWN_CHARACTERS - SHOWN_END : -SHOWN_END]
    more = (cut or TEXTS.approval_cut).format(more=len(rest), lines=rest.count("\n") + 1)
    return f"{text[: SHOWN_CHARACTERS - SHOWN_END]}\n{more}\n{text[-SHOWN_END:]}"


def with_tabs(what: str) -> str:
    """Make characters visible as `visible` does, with an arrow before each tab."""
    return visible(what).replace("\t", "⇥\t")


def fenced(code: str) -> str:
    """A code block whose fence does not occur in the code."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}\n{code}\n{fence}"


def code(scope: str) -> str:
    """A permission's scope as inline code, with delimiters that do not occur in it."""
    shown = visible(scope).replace("`", "⟨U+0060⟩").replace("\n", "⟨U+000A⟩")
    return f"`{shown}`"


def approval_keyboard(request: ApprovalRequest) -> Keyboard:
    labels = TEXTS.approve_once, TEXTS.approve_chat, TEXTS.deny
    once, always, deny = (
        Button(f"{APPROVAL}:{request.id}:{letter}", label)
        for letter, label in zip(DECISIONS, labels, strict=True)
    )
    lasting = may_last(request.scope, request.because)
    return [[once, deny], [always]] if lasting else [[once, deny]]


def decision(key: str) -> tuple[str, Decision | None]:
    """Parse a button's key into the request's id and the decision; None for any other key."""
    id, _, letter = key.removeprefix(f"{APPROVAL}:").rpartition(":")
    return id, DECISIONS.get(letter)
