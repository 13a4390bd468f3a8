"""/trust: what of strangers has touched a chat, and an owner's word that it is theirs.

A press vouches for what its message showed and for nothing that came after.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agent.store.jobs import Job
from agent.store.notes import SavedNote
from agent.trust import Taint, told
from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult

TRUST = "trust"
LISTED = 8  # notes and jobs with a button each
# "This page is mine", "I trust that file": words alone clear nothing, but bring the buttons.
VOUCHING = re.compile(
    r"\b(?:this|that|these|those|it|the (?:page|file|document|message|picture|repo(?:sitory)?))\b.{0,30}"
    r"\b(?:is|are) (?:mine|ours|from me|by me)\b|\b(?:i|you can) trust (?:this|that|it|these|those|the)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Touched:
    """What strangers may have written in a chat."""

    conversation: Sequence[Taint]
    files: Sequence[Taint]
    notes: Sequence[SavedNote]
    jobs: Sequence[Job]


async def touched(context: HandlerContext, chat: str) -> Touched:
    files: Sequence[Taint] = ()
    if context.services.sandbox is not None:
        files = await (await context.services.sandbox(chat)).files.taints()
    jobs = [job for job in await context.store.jobs.of_chat(chat) if job.spec.stranger]
    notes = [note for note in await context.store.notes.all(chat) if note.stranger]
    return Touched(await context.store.taints.of_chat(chat), files, notes, jobs)


async def trust(context: HandlerContext, call: CommandCall) -> None:
    await context.send(call.chat, *await trust_report(context, call.chat))


async def offer(context: HandlerContext, chat: str, words: str) -> None:
    """Bring the buttons where a person says that a stranger's text is theirs."""
    if VOUCHING.search(words) and await context.store.taints.of_chat(chat):
        await context.send(chat, *await trust_report(context, chat))


async def trust_report(context: HandlerContext, chat: str) -> tuple[str, Keyboard]:
    """What has touched the chat, and a button for each thing that can be vouched for."""
    texts, zone = context.texts, str((await context.local_time(chat)).tzinfo)
    now = await touched(context, chat)
    lines: list[str] = []
    rows: list[list[Button]] = []
    for kind, taints in (("chat", now.conversation), ("files", now.files)):
        if taints:
            lines.append(texts.touched[kind].format(sources=told(taints, zone)))
            key = f"{TRUST}:{kind}:{max(taint.number for taint in taints)}"
            rows.append([Button(key, texts.vouch[kind])])
    for note in now.notes[:LISTED]:
        lines.append(
            texts.touched["note"].format(number=note.id, text=note.text, source=note.stranger)
        )
        rows.append([Button(f"{TRUST}:note:{note.id}", texts.vouch["note"].format(number=note.id))])
    for job in now.jobs[:LISTED]:
        text, source = job.spec.task, job.spec.stranger
        lines.append(texts.touched["job"].format(number=job.id, text=text, source=source))
        rows.append([Button(f"{TRUST}:job:{job.id}", texts.vouch["job"].format(number=job.id))])
    return "\n".join([*lines, "", texts.touched_how]) if lines else texts.untouched, rows


async def press_trust(context: HandlerContext, press: ButtonPress) -> PressResult:
    """`chat:NUMBER`, `files:NUMBER`, `note:ID` or `job:ID`; then what is left."""
    kind, _, argument = press.argument.partition(":")
    number, by = int(argument), press.sender.name
    match kind:
        case "chat":
            done = bool(await context.store.taints.clear(press.chat, number, by))
        case "files":
            assert context.services.sandbox
            files = (await context.services.sandbox(press.chat)).files
            done = bool(await files.vouch(number, by))
            if done:
                ledger = context.store.ledger
                await ledger.record("taint-cleared", press.chat, what="files", upto=number, by=by)
        case "note" | "job":
            done = await context.store.taints.vouch(kind, press.chat, number, by)
        case _:
            done = False
    toast = context.texts.vouched if done else context.texts.expired
    return PressResult(toast, later=partial(trust_report, context, press.chat))
