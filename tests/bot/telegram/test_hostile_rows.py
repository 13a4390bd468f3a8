"""Whatever stands in the database, the same process answers the next ordinary message, and a new one starts."""

import random
import re
import sqlite3
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent.approvals import ApprovalRequest
from agent.budgets import WORDS, DailyBudgets
from agent.events import TokenUsage
from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.model import Completion
from agent.plan import PlanStep
from agent.schedule.times.rule import Calendar, dump
from agent.store import Incoming, Store, open_store
from agent.store.chats import ChatFile
from agent.store.errors import StoreFull
from agent.store.jobs import JobSpec
from agent.store.pictures import data_url
from agent.store.search import SearchHit
from agent.store.turns import RenderedMessage, TurnEnd
from agent.store.usage import CacheReuse
from bot.localgram import Localgram
from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.hostile_rows import damage
from fakes.model_scripted import ModelServer, says
from fakes.obedient_bot import UNPACED

AT_ONCE = 20  # hostile values before the next ordinary message
PER_PROCESS = 5  # batches
CHAT = f"tg:{OWNER}"
ORDINARY = re.compile(r"ordinary \d+")


async def fill_documents(store: Store, chat: str, batch: int) -> None:
    """One of the chat that was read, one of a folder that waits."""
    added = await store.documents.add(chat, f"received/{batch}.txt", 5, 0.0)
    if document := await store.documents.begin([added.id]):  # else the bot is reading it
        await store.documents.finish(document, [(1, "tea", "Boil water.")], "page", 1)
    passages = await store.documents.without_vector("m", 9)
    await store.documents.put_vectors("m", passages, [array("f", [0.6, 0.8])] * len(passages))
    await store.documents.sync_folder("papers", {f"{batch}.txt": (5, 0.0)})


async def fill(store: Store, batch: int) -> None:
    """Rows in every table (but `frozen`), of the owner's chat and of another."""
    for chat in (CHAT, "tg:222"):
        name = f"{chat}-{batch}"
        await store.inbox.add(Incoming(chat, "fill", name, "words", files=("a",), stranger=name))
        rows = await store.inbox.waiting(chat, ["fill"])
        note, _ = await store.notes.add(chat, f"note {batch}", stranger=name)
        seen = User("h old", (data_url("image/png", name.encode()),))
        shown = RenderedMessage("h", seen, ((note.id, "- note"),))
        turn = await store.turns.begin(f"t{name}", rows, shown)
        await store.plans.change(chat, lambda plan: (PlanStep("boil water"),), turn.id)
        await store.turns.started(turn, "c1")
        await store.turns.add(turn, Assistant("", (ToolCall("c1", "bash", "{}"),)))
        await store.turns.add(turn, ToolResult("c1", "bash", "done"))
        end = TurnEnd(Assistant("bye"), "bye", "done", TokenUsage(), ['{"text": "x"}'])
        await store.turns.end(turn, end)
        await store.usage.add(
            chat, turn.conversation, turn.id, Completion("", (), "", "stop"), CacheReuse()
        )
        hit = SearchHit("note", note.id, note.text, 0.0)
        await store.embeddings.put(chat, "m", [hit], [array("f", [0.6, 0.8])])
        await fill_documents(store, chat, batch)
        await store.addresses.keep(chat, [f"https://example.org/{batch}"])
        await store.links.make_code(chat, chat, 60)
        request = ApprovalRequest(name, turn.id, "c1", chat, "what", "scope", 2e9)
        await store.approvals.open(request)
        await store.approvals.grant(chat, f"scope{batch}", "olga")
        job = await store.jobs.add(
            JobSpec(chat, "remind", "daily", dump(Calendar((480,), "UTC")), "UTC", "tea", {})
        )
        await store.occurrences.add(job.id, 2_000_000_000 + batch, None)
        await store.files.add(ChatFile(chat, f"f{batch}", "in", "f", "text/plain"))
        await store.people.put("telegram", f"{batch}1", "Ann", "member")
    await store.key_values.put(f"fact{batch}", 1)
    await store.people.make_code("member", 60)
    day = DailyBudgets(store.budgets, dict.fromkeys(WORDS, 9)).today()
    await store.budgets.settle(CHAT, day, {"calls": 1})
    await store.budgets.reserve(CHAT, day, {"hosts": 0}, {"hosts": 9}, f"h{batch}:1")
    await store.freeze.freeze("olga")
    await store.freeze.thaw("olga")
    await store.set_aside.add("updates", f"u{batch}", ValueError("x"), "{}")
    await store.freeze.thaw_by_code("olga", None)
    await store.taints.vouch("note", CHAT, note.id, "olga")
    await store.leases.acquire("tg:222", f"{batch}/1/2/3")


@pytest.mark.slow
async def test_after_hostile_rows_an_ordinary_message_is_answered(
    gram: Localgram, tmp_path: Path
) -> None:
    def script(request: Any) -> Any:
        # Not in the last message alone: behind it a plan may stand again once the prompt was shortened.
        found = ORDINARY.findall(str([message["content"] for message in request["messages"]]))
        return says(f"answer to {found[-1]}" if found else "Hello.")

    chance, olga = random.Random(20), gram.user("Olga", id=OWNER, started=True)
    async with ModelServer(script=script) as model:
        process = Process(gram, tmp_path, model.url, OWNER)
        process.first = UNPACED
        done: list[str] = []

        async def answered(words: str) -> None:
            await olga.send(words)
            try:
                # Perhaps to an older one, which damage has put behind it.
                await olga.next_message(where=lambda m: "answer to ordinary" in m.text, seconds=60)
            except TimeoutError:
                said = [message.text[:80] for message in olga.messages()][-9:]
                pytest.fail("\n".join([words, *done, *said, process.log[-6000:]]))

        for start in range(0, 1000 // AT_ONCE, PER_PROCESS):
            async with process.running():
                for batch in range(start, start + PER_PROCESS):
                    await answered(f"ordinary {batch}")
                    async with open_store(process.database) as store:
                        # What is damaged refers to nothing, or has the highest number there is.
                        with suppress(sqlite3.IntegrityError, StoreFull):
                            await fill(store, batch)
                    done = damage(process.database, AT_ONCE, chance)
                    await answered(f"ordinary {batch}00")
