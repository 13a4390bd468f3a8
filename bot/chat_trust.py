"""Text in a chat that strangers may have written, and owners vouching that it is theirs, in any app and the terminal.

A press vouches for what its message showed, not for what came later.
"""

from dataclasses import dataclass

from agent.sandbox.files import Files
from agent.store import Store
from agent.trust import told
from bot.approval_question import code
from bot.channel import Button, Keyboard
from bot.texts import Texts

TRUST = "trust"  # the kind of its buttons
LISTED = 8  # notes and jobs with a button each


@dataclass(frozen=True, slots=True)
class ChatTrust:
    """`zone` is an IANA name, `files` None where there is no sandbox."""

    chat: str
    store: Store
    files: Files | None
    texts: Texts
    zone: str

    async def report(self) -> tuple[str, Keyboard]:
        """What strangers may have written, and a button for each thing that can be vouched for."""
        texts = self.texts
        chat = await self.store.taints.of_chat(self.chat)
        files = await self.files.taints() if self.files else []
        lines: list[str] = []
        rows: list[list[Button]] = []
        for kind, taints in (("chat", chat), ("files", files)):
            if taints:
                lines.append(texts.touched[kind].format(sources=code(told(taints, self.zone))))
                key = f"{TRUST}:{kind}:{max(taint.number for taint in taints)}"
                rows.append([Button(key, texts.vouch[kind])])
        notes = [(n.id, n.text, n.stranger) for n in await self.store.notes.all(self.chat)]
        jobs = [
            (job.id, job.spec.task, job.spec.stranger)
            for job in await self.store.jobs.of_chat(self.chat)
        ]
        for kind, found in (("note", notes), ("job", jobs)):
            for number, text, source in [one for one in found if one[2]][:LISTED]:
                shown = {"text": code(text), "source": code(source)}
                lines.append(texts.touched[kind].format(number=number, **shown))
                key, label = f"{TRUST}:{kind}:{number}", texts.vouch[kind].format(number=number)
                rows.append([Button(key, label)])
        return "\n".join([*lines, "", texts.touched_how]) if lines else texts.untouched, rows

    async def vouch(self, argument: str, by: str) -> bool:
        """Vouch for `chat:NUMBER`, `files:NUMBER`, `note:ID` or `job:ID`; False where that is nothing."""
        kind, _, number = argument.partition(":")
        match kind:
            case "chat":
                return bool(await self.store.taints.clear(self.chat, int(number), by))
            case "files" if self.files:
                done = bool(await self.files.vouch(int(number), by))
                if done:
                    facts = {"what": "files", "upto": number, "by": by}
                    await self.store.ledger.record("taint-cleared", self.chat, **facts)
                return done
            case "note" | "job":
                return await self.store.taints.vouch(kind, self.chat, int(number), by)
        return False
