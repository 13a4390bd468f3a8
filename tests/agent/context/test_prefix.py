"""Random conversations through the whole path: whatever happens, prompts only grow at the end."""

import asyncio
import json
import re
import sqlite3
import tempfile
import zlib
from collections import defaultdict
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.model import Request
from agent.tools.tool import Call, Output, tool
from fakes.model_caching import CachingModel, common, line, rendered
from tests.agent.chats.conftest import Bench, said

WINDOW = 4096
CHATS = ("tg:1", "tg:2", "tg:-100:7")
chats = st.sampled_from(CHATS)
sizes = st.integers(0, 1500)


async def fill(call: Call, size: int) -> Output:
    "Give so many characters."
    return Output(f"[{call.chat}] " + "o" * size)


def answer(request: Request) -> Assistant:
    """As many calls as the person asked for, then words."""
    if "is about to be shortened" in request.messages[-1].text:
        return Assistant(f"{tags(request).pop()} wants a number of things, as was said before.")
    since = list(request.messages)
    while since and not (isinstance(since[-1], User) and "calls=" in since[-1].text):
        since.pop()
    wanted = [
        int(size) for size in re.findall(r"calls=(\S*)", since[-1].text)[-1].split(",") if size
    ]
    done = len([m for m in request.messages[len(since) :] if isinstance(m, ToolResult)])
    if done < len(wanted) and request.tool_choice != "none":
        call = ToolCall(
            f"c{zlib.crc32(rendered(request))}",
            "fill",
            json.dumps({"size": wanted[done] // 97 * 97 + done}),
        )
        return Assistant("", (call,))
    return Assistant(f"done with {len(wanted)} calls")


def tags(request: Request) -> set[str]:
    """The chats whose words are in a request."""
    return set(re.findall(r"\[(tg:[-\d:]+)\]", "".join(m.text for m in request.messages)))


class Conversations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "voltaire.db"
        self.model = CachingModel(answer, n_ctx=WINDOW)
        self.model.before = self.asked
        self.turns: dict[str, int] = defaultdict(int)
        self.cut: set[str] = set(CHATS)  # whose next prompt need not go on from the last
        self.last: dict[str, bytes] = {}
        self.sent: dict[str, bytes] = {}  # without the answer
        self.compacted: dict[str, int] = defaultdict(int)
        self.after: dict[str, int] = {}  # tokens right after the last compaction
        self.updates = 0

    @initialize()
    def start(self) -> None:
        self.runner.run(self._start())

    async def _start(self) -> None:
        self.bench = Bench(self.path, self.model, [tool(fill)])
        self.stack = AsyncExitStack()
        self.chats = await self.stack.enter_async_context(self.bench.running())

    def asked(self, request: Request) -> None:
        """Every request on its way to the model."""
        prompt = rendered(request)
        [chat] = tags(request)  # nobody else's words are in it
        assert len(prompt) // 4 <= WINDOW
        if "is about to be shortened" in request.messages[-1].text:
            known = rendered(replace(request, messages=request.messages[:-1]))
            if chat in self.cut:
                return  # a note was taken out of what was said, so even the summary reads it anew
            assert self.last[chat].startswith(known), place(known, self.last[chat])
            return
        if request.max_tokens == 1 and chat in self.cut:
            return  # read in while nobody waited, begun before the conversation was changed
        with closing(sqlite3.connect(self.path)) as file:
            row = file.execute("SELECT sum(compacted) FROM conversations WHERE chat = ?", (chat,))
            compacted = row.fetchone()[0]
        if compacted > self.compacted[chat]:
            grown = len(self.last[chat]) // 4 - self.after.get(chat, 0)
            assert compacted - self.compacted[chat] == 1
            assert grown > 0.35 * WINDOW or chat not in self.after
            self.after[chat] = len(prompt) // 4
            assert self.after[chat] < 0.8 * WINDOW
            self.compacted[chat] = compacted
        elif chat in self.cut:
            self.after.pop(chat, None)
        else:
            # A call that would be a circle (its result was compacted away) is not told back.
            before = self.sent if request.tool_choice == "none" else self.last
            assert prompt.startswith(before[chat]), place(before[chat], prompt)
        self.sent[chat] = prompt
        self.cut.discard(chat)
        self.last[chat] = prompt
        if request.max_tokens != 1:
            self.last[chat] += line(answer(request))

    @rule(chat=chats, size=sizes, calls=st.lists(sizes, max_size=4))
    def say_once(self, chat: str, size: int, calls: list[int]) -> None:
        self.say(chat, size, calls)

    def say(self, chat: str, size: int, calls: list[int]) -> None:
        words = f"[{chat}] {'w' * size} calls={','.join(map(str, calls))}"
        self.runner.run(self._said(chat, words))

    @rule(chat=chats, turns=st.integers(2, 7), size=st.integers(500, 2500))
    def talk(self, chat: str, turns: int, size: int) -> None:
        for number in range(turns):
            self.say(chat, size, [size, 50 * number])

    @rule(chat=chats)
    def correct(self, chat: str) -> None:
        # Other words each time: an edit that changes none is not answered.
        words = f"[{chat}] corrected {self.updates} times calls="
        self.runner.run(self._said(chat, words, kind="edit", ref="1"))

    @rule(chat=chats, text=st.text(min_size=1, max_size=60))
    def note(self, chat: str, text: str) -> None:
        self.runner.run(self.chats.store.notes.add(chat, f"[{chat}] {text}"))

    @rule(chat=chats, text=st.text(max_size=30))
    def correct_note(self, chat: str, text: str) -> None:
        async def work() -> None:
            for note in (await self.chats.store.notes.all(chat))[:1]:
                await self.chats.store.notes.correct(chat, note.id, f"[{chat}] now {text}")

        self.runner.run(work())

    @rule(chat=chats)
    def forget(self, chat: str) -> None:
        async def work() -> None:
            for note in (await self.chats.store.notes.all(chat))[:1]:
                await self.chats.store.notes.delete(chat, note.id)
                self.cut.add(chat)

        self.runner.run(work())

    @rule(chat=chats)
    def fresh(self, chat: str) -> None:
        self.cut.add(chat)
        self.runner.run(self.chats.store.chats.new_conversation(chat))

    @rule(chat=chats)
    def retry(self, chat: str) -> None:
        async def work() -> None:
            if await self.chats.retry(chat):
                self.cut.add(chat)
                self.turns[chat] += 1
                await self.bench.heard.replies(chat, self.turns[chat])

        self.runner.run(work())

    @rule()
    def restart(self) -> None:
        async def work() -> None:
            await self.stack.aclose()
            self.turns.clear()
            await self._start()

        self.runner.run(work())

    @invariant()
    def all_is_answered(self) -> None:
        with closing(sqlite3.connect(self.path)) as file:
            assert file.execute("SELECT count(*) FROM inbox WHERE state <> 'done'").fetchone() == (
                0,
            )

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()
        self.folder.cleanup()

    async def _said(self, chat: str, words: str, **fields: str) -> None:
        self.updates += 1
        self.turns[chat] += 1
        await self.chats.submit(said(words, str(self.updates), chat, **fields))
        ends = await self.bench.heard.replies(chat, self.turns[chat])
        assert ends[-1].startswith("done with")


def place(old: bytes, new: bytes) -> str:
    at = common(old, new)
    start = max(0, at - 60)
    return f"at {at}: {old[start : at + 60]!r} became {new[start : at + 60]!r}"


TestPrefix = Conversations.TestCase
TestPrefix.settings = settings(
    max_examples=3,
    stateful_step_count=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a shrunk one would take minutes
)


def test_a_note_that_is_forgotten_before_a_compaction() -> None:
    """It leaves what was said, so the summary's own request begins anew as well."""
    chat, it = "tg:1", Conversations()
    it.start()
    try:
        for number, sizes in enumerate(
            (
                [(393, 186), (0, 0), (1155, 273)],
                [(557, 720), (517, 721), (336, 695), (0, 0), (462, 541), (953, 502)],
                [(857, 555), (814, 374), (336, 128), (0, 0), (776, 426)],
                [(733, 638), (468, 673), (481, 341), (536, 124), (0, 0)],
                [(477, 239), (822, 622), (668, 626), (0, 0), (873, 286), (756, 524)],
            )
        ):
            it.note(chat, f"n{number}")
            for size, output in sizes:
                if size:
                    it.say(chat, size, [output])
                else:
                    it.forget(chat)
        assert it.compacted[chat]
    finally:
        it.teardown()
