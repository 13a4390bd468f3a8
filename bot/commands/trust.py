"""/trust: text of strangers in a chat, and an owner's word that it is theirs."""

import re
from dataclasses import dataclass

from agent.sandbox.files import Files
from agent.store import Store
from agent.trust import told
from bot.approval_question import code
from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.texts import TEXTS

TRUST = "trust"  # the kind of its buttons
LISTED = 8  # notes and jobs with a button each


@dataclass(frozen=True, slots=True)
class ChatTrust:
    """The untrusted text of one chat, and vouching for it.

    `zone` is an IANA name.
    """

    chat: str
    store: Store
    files: Files
    zone: str

    async def report(self) -> tuple[str, Keyboard]:
        """List the untrusted text of the chat, with a button to vouch for each item."""
        chat = await self.store.taints.of_chat(self.chat)
        files = await self.files.taints()
        lines: list[str] = []
        rows: list[list[Button]] = []
        for kind, taints in (("chat", chat), ("files", files)):
            if taints:
                lines.append(TEXTS.touched[kind].format(sources=code(told(taints, self.zone))))
                key = f"{TRUST}:{kind}:{max(taint.number for taint in taints)}"
                rows.append([Button(key, TEXTS.vouch[kind])])
        notes = [(n.id, n.text, n.stranger) for n in await self.store.notes.all(self.chat)]
        jobs = [
            (job.id, job.spec.task, job.spec.stranger)
            for job in await self.store.jobs.of_chat(self.chat)
        ]
        for kind, found in (("note", notes), ("job", jobs)):
            for number, text, source in [one for one in found if one[2]][:LISTED]:
                shown = {"text": code(text), "source": code(source)}
                lines.append(TEXTS.touched[kind].format(number=number, **shown))
                key, label = f"{TRUST}:{kind}:{number}", TEXTS.vouch[kind].format(number=number)
                rows.append([Button(key, label)])
        return "\n".join([*lines, "", TEXTS.touched_how]) if lines else TEXTS.untouched, rows

    async def vouch(self, argument: str, by: str) -> bool:
        """Vouch for `chat:NUMBER`, `files:NUMBER`, `note:ID` or `job:ID`; False if that does not exist."""
        kind, _, number = argument.partition(":")
        match kind:
            case "chat":
                return bool(await self.store.taints.clear(self.chat, int(number), by))
            case "files":
                done = bool(await self.files.vouch(int(number)))
                if done:
                    facts = {"what": "files", "upto": number, "by": by}
                    await self.store.ledger.record("taint-cleared", self.chat, **facts)
                return done
            case "note" | "job":
                return await self.store.taints.vouch(kind, self.chat, int(number), by)
        return False


# "This page is mine", "I trust that file": such words bring the buttons; only a press vouches.
VOUCHING = re.compile(
    r"\b(?:this|that|these|those|it|the (?:page|file|document|message|picture|repo(?:sitory)?))\b.{0,30}"
    r"\b(?:is|are) (?:mine|ours|from me|by me)\b|\b(?:i|you can) trust (?:this|that|it|these|those|the)\b",
    re.IGNORECASE,
)


async def trust(context: HandlerContext, call: CommandCall) -> None:
    await context.send(call.chat, *await (await of_chat(context, call.chat)).report())


async def offer(context: HandlerContext, chat: str, words: str) -> None:
    """Show the /trust buttons after an owner's message that says that untrusted text is theirs."""
    if VOUCHING.search(words) and await context.store.taints.of_chat(chat):
        await context.send(chat, *await (await of_chat(context, chat)).report())


async def press_trust(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Vouch, and update the list of what remains."""
    chat = await of_chat(context, press.chat)
    done = await chat.vouch(press.argument, press.sender.name)
    return PressResult(TEXTS.vouched if done else TEXTS.expired, later=chat.report)


async def of_chat(context: HandlerContext, chat: str) -> ChatTrust:
    zone = str((await context.local_time(chat)).tzinfo)
    return ChatTrust(chat, context.store, (await context.services.sandbox(chat)).files, zone)
