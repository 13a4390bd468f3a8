"""Conversations of the real agent under real chat templates, on the real server.

For each template a small model says, in the family's own format, what the script
wants: calls with and without words before them, thoughts where the template has
them, answers; two chats take turns. A `Row` counts calls that were made, arguments that
were right, calls and results found again in the last prompt, answers shown without a
tag, tokens read again per tool step and those of them beyond the thought or the words
that the template drops, tokens read again per new message, and those of these
that were still read again while the person waited. With `long` the last turn but one
has ten calls with results of 1,000 tokens. The model has full attention, or the layers
of a hybrid (lfm2) or of a sliding-window model (gemma3), which cannot go back.
With `calls` it writes its calls in another family's format, which the server's
parser for its template does not know.

Read again is what the next prompt does not repeat of the last one and its answer
(the rendered texts, in the server's tokens), and what its cache did not give of
the part that is the same (`cache_n`). What stands behind a dropped thought, or
dropped words, is read again with it, and counts as that. Waited for is what of the prompt in front of the
new message its cache did not give, after what was read in between; the few marks of
roles right in front of it are as new as it is.
"""

import asyncio
import itertools
import json
import re
import statistics
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import aiohttp

from agent.approvals import Approvals
from agent.channels import Assignment, NoChannels
from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.events import Emit, Event, TurnFinished
from agent.llm.openai import OpenAIModel
from agent.llm.queued_model import QueuedModel
from agent.model import Ahead, Completion, ModelRefused, Piece, Request
from agent.store import Incoming, open_store
from agent.tools.context import ToolContext
from agent.tools.registry import chosen
from agent.tools.tool import Call, Output
from agent.turn.loop import run_turn
from agent.turn.turn import Turn, TurnLimits
from backend.protocol import PERSON, Endpoint
from fakes import spoken
from fakes.gguf_maker import Kind
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.llama_embedded import serve
from fakes.scripted_gguf import make_scripted, saying

CHATS = ("tg:1", "tg:2")
THINKING = {"off": 0, "default": None, "on": 512}  # tokens of thought; None: as the template has it
# What a template is told of that, by the agent as by whoever renders what the model shall say.
MODES: dict[str, dict[str, Any]] = {
    "off": {"enable_thinking": False, "thinking": False},
    "default": {},
    "on": {"enable_thinking": True, "thinking": True},
}
WORDS = "I look into it first."
THOUGHT = "The person wants this done, so the tool it is; nothing else will do."
MARK = "result-"
SECONDS = 600.0  # for one turn, on a busy machine
CONTEXT = 32768
WAITED = 16  # tokens of a new message's prompt that may be read again while a person waits
# Tokens of a tool step's prompt that may be read again beside what was dropped; a mark of a role takes several of the
# toy's vocabulary.
BEYOND = 24
DROPPED = re.compile(f"{re.escape(THOUGHT)}|{re.escape(WORDS)}")
# What no prompt of ours can mend.
KNOWN = {
    "openbmb-MiniCPM5-1B": "its template glues the items of a list together, so such a call cannot be read again",
}
# The same of what a tool step reads again.
KNOWN_STEPS = {
    "CohereForAI-c4ai-command-r-plus-tool_use": "its template ends each prompt with 300 tokens of instructions",
    "fireworks-ai-llama-3-firefunction-v2": "its template trims the space that its calls begin with",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "a call without thought is told back in another form than its model's",
    "unsloth-Apriel-1.5": "its model writes the ids of its calls, and the agent gives each another",
    "moonshotai-Kimi-K2": "its template numbers the calls of each message from 0, its model those of a conversation",
}


@dataclass(frozen=True)
class Act:
    """What the model does once: a call, behind words or not, or an answer."""

    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""


# Quotes, line breaks, tags and brackets in strings; a number; a list.
SCRIPT: tuple[tuple[Act, ...], ...] = (
    (
        Act("bash", {"command": "echo one \"two\" 'three'\n<b> {4} [5] \\6 ü", "seconds": 30}),
        Act("git_commit", {"repo": "notes", "message": "30", "files": ["a.txt", "b c.txt"]}),
        Act(words="Both are done."),
    ),
    (
        Act("write_file", {"path": "a/b.py", "content": "x = {'a': 1}\n\n# </end>\n"}, WORDS),
        Act(words="It is written."),
    ),
    (Act(words="You are welcome."),),
)
LONG: tuple[tuple[Act, ...], ...] = (  # in the first chat alone
    (*(Act("bash", {"command": f"cat part {n}"}) for n in range(10)), Act(words="All read.")),
    (Act(words="Until then."),),
)
ACTS = [act for turn in (*SCRIPT, *LONG) for act in turn]
SENTENCE = "It is as it should be. "


@dataclass
class Asked:
    """One request of a chat: the prompt as rendered, what the model said to it, and the cache's part."""

    prompt: str
    said: str
    first: bool  # of its turn
    cached: int


@dataclass
class Row:
    """A template's figures. `failed` names what ended a turn; tokens are medians, worst in brackets. `own`: its calls
    have its family's format."""

    template: str
    thinking: str
    long: bool = True
    own: bool = True
    turns: int = 0
    calls: int = 0
    right: int = 0
    again: int = 0
    answers: int = 0
    step: list[int] = field(default_factory=list)
    beyond: list[int] = field(default_factory=list)
    message: list[int] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)
    difference: str = ""
    failed: str = ""

    @property
    def sound(self) -> bool:
        """Every turn ended with its answer, every call was made as it was meant and is seen again."""
        made = [acts for _, acts in turns(long=self.long)]
        calls = sum(bool(act.tool) for acts in made for act in acts)
        figures = (self.turns, self.calls, self.right, self.again, self.answers)
        return figures == (len(made), calls, calls, calls, len(made))

    @property
    def waits(self) -> bool:
        """Whether a new message waits for more than WAITED in the median."""
        return self.sound and bool(self.waited) and statistics.median(self.waited) > WAITED

    @property
    def rereads(self) -> bool:
        """Whether a tool step reads more than BEYOND again that the template did not drop."""
        known = self.template in KNOWN_STEPS
        return self.sound and self.own and not known and max(self.beyond, default=0) > BEYOND


async def measure(
    name: str,
    thinking: Sequence[str],
    kind: Kind = "llama",
    long: Collection[str] = ("default", "on"),
    calls: str | None = None,
    blank: str = "",
) -> list[Row]:
    """The script in two chats that take turns, with one template, once in each way to think; LONG, too, where `long` names that.

    `calls` names the format of the calls (spoken.CROSSED); None: the family's own.
    `blank` is white space that the model writes behind words, in front of what its template has there.
    """
    template = spoken.template(name)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "plain.gguf"
        make_scripted(model, [], template)
        texts = {}
        async with serve(model) as endpoint, Server(endpoint) as server:
            for how in thinking:
                texts[how] = await said(name, server, how, calls=calls, blank=blank)
        model = Path(folder) / "said.gguf"
        every = [text for spoken_so in texts.values() for text in spoken_so.values()]
        ids = make_scripted(model, every, template, context=CONTEXT, kind=kind)
        async with serve(model, CONTEXT) as endpoint, Server(endpoint, every) as server:
            for how in thinking:
                spoken_ids = {act: (text, ids[text]) for act, text in texts[how].items()}
                title = ": ".join(filter(None, (kind if kind != "llama" else "", calls, name)))
                row = Row(title, how, how in long, own=calls is None)
                path = Path(folder) / f"{how}.db"
                await converse(row, path, server, spoken_ids)
                rows.append(row)
    return rows


async def said(
    name: str,
    server: "Server",
    thinking: str,
    acts: Sequence[Act] = ACTS,
    calls: str | None = None,
    blank: str = "",
) -> dict[int, str]:
    """Each act in the family's words."""
    tools = [tool.schema for tool in chosen([])]

    async def render(messages: Sequence[Mapping[str, Any]]) -> str:
        wire = {"messages": list(messages), "tools": tools, "chat_template_kwargs": MODES[thinking]}
        return await server.rendered(wire)

    speaker = spoken.Speaker(name, render, thinks=thinking != "off")
    texts, called = {}, 0
    for act in acts:
        if act.tool and calls:
            text = spoken.CROSSED[calls](act.tool, act.arguments)
            text = f"{act.words}\n{text}" if act.words else text
        elif act.tool:
            text = await speaker.call(act.tool, act.arguments, act.words, called)
        else:
            text = await speaker.answer(act.words)
        called += bool(act.tool)
        texts[id(act)] = text.replace(spoken.THOUGHT, THOUGHT).replace(WORDS, WORDS + blank)
    return texts


async def converse(
    row: Row, path: Path, server: "Server", texts: Mapping[int, tuple[str, int]]
) -> None:
    ran: list[tuple[str, Mapping[str, Any]]] = []
    results: list[str] = []

    async def answered(tool: str, _: Call, **arguments: Any) -> Output:
        ran.append((tool, arguments))
        results.append(f"{MARK}{len(results)}.")
        long = str(arguments.get("command", "")).startswith("cat part")
        return Output(f"{results[-1]} " + SENTENCE * (115 if long else 40))

    endpoint = server.endpoint.model_copy(
        update={"template": MODES[row.thinking], "profile": row.template}
    )

    async def same() -> Endpoint:
        return endpoint

    thinking = THINKING[row.thinking]
    async with open_store(path) as store, OpenAIModel(same) as model:
        queue, ended = LocalGpuQueue(), asyncio.Queue[TurnFinished]()
        actors = {chat: Actor(model) for chat in CHATS}
        tools = [replace(tool, function=partial(answered, tool.name)) for tool in chosen([])]
        schemas = tuple(tool.schema for tool in tools)
        window = ModelWindow(store, model, queue, schemas)

        async def run(assignment: Assignment, emit: Emit) -> TurnFinished:
            queued = QueuedModel(actors[assignment.chat], queue, assignment.chat, PERSON)
            turn = Turn(
                model=queued,
                journal=assignment.journal,
                tools=tools,
                schemas=schemas,
                context=ToolContext(sandbox=cast("Any", None)),
                approvals=Approvals(store.approvals, None),
                limits=TurnLimits(trouble_seconds=0.0, away_seconds=5.0),
                thinking=thinking,
            )
            return await run_turn(turn, emit)

        for chat in CHATS:
            await store.chats.set(chat, thinking=thinking)
        async with Chats(store, run, window, NoChannels(), Ends(ended)) as chats:
            for number, (chat, acts) in enumerate(turns(long=row.long)):
                before = len(ran)
                actors[chat].begin([texts[id(act)] for act in acts])
                words = f"Message {number}, {row.thinking}: please look after {'the things that we spoke of, ' * 24}thanks."
                await chats.submit(Incoming(chat, "bench", str(number), words))
                finished = await asyncio.wait_for(ended.get(), SECONDS)
                _judge(row, acts, finished, ran[before:])
                await chats.tasks.ended()  # what is read while nobody waits
        for chat in CHATS:
            await _reread(row, actors[chat].asked, server)
        last = "".join(actors[chat].asked[-1].prompt for chat in CHATS if actors[chat].asked)
        calls = [act for _, acts in turns(long=row.long) for act in acts if act.tool]
        seen = [spoken.mark_of(act.arguments) in last for act in calls]
        row.again = sum(one and result in last for one, result in zip(seen, results, strict=False))


def turns(*, long: bool) -> Iterator[tuple[str, Sequence[Act]]]:
    for acts in SCRIPT:
        for chat in CHATS:
            yield chat, acts
    for acts in LONG if long else ():
        yield CHATS[0], acts


def _judge(
    row: Row,
    acts: Sequence[Act],
    finished: TurnFinished,
    ran: Sequence[tuple[str, Mapping[str, Any]]],
) -> None:
    made = deque(ran)
    for act in acts:
        if not act.tool:
            continue
        if not made or made[0][0] != act.tool:
            row.failed = row.failed or f"{act.tool} was not read"
            continue
        _, arguments = made.popleft()
        given = {name: value for name, value in arguments.items() if name in act.arguments}
        row.calls += 1
        row.right += given == act.arguments
        if given != act.arguments:
            row.failed = row.failed or f"{act.tool} got {given}"
    row.turns += finished.reason == "done"
    row.answers += finished.text == acts[-1].words
    if finished.reason != "done":
        row.failed = finished.text
    elif finished.text != acts[-1].words:
        row.failed = row.failed or f"shown: {finished.text!r}"


async def _reread(row: Row, asked: Sequence[Asked], server: "Server") -> None:
    for before, now in itertools.pairwise(asked):
        known = before.prompt + before.said
        same = spoken.common_prefix(known, now.prompt)
        lost = await server.tokens(known[len(same) :], apart=True)
        # A literal text is one token here, so the part that is the same is counted as the server did.
        kept = await server.tokens(same)
        lost += max(0, kept - now.cached - SLACK)
        (row.message if now.first else row.step).append(lost)
        if not now.first:
            beyond = await _beyond_dropped(before, len(same), server)
            row.beyond.append(beyond + max(0, kept - now.cached - SLACK))
        else:
            old = now.prompt[: now.prompt.rindex(BEGINS)]
            # Cut off in the middle of what is one token here, a text has more tokens than with its end.
            ahead = min([await server.tokens(text) for text in (known_before(old), old)])
            row.waited.append(max(0, ahead - now.cached))
        if lost and not row.difference:
            had, has = known[len(same) :], now.prompt[len(same) :]
            row.difference = f"{same[-12:]!r}: {had[:24]!r} became {has[:24]!r}"


async def _beyond_dropped(before: Asked, same: int, server: "Server") -> int:
    """Tokens of a prompt and its answer behind the first `same` characters in front of what the template drops.

    An empty thought stands in the prompt: what the model said stands behind it.
    """
    if same < len(before.prompt):
        return await server.tokens(before.prompt[same:])
    lost = (before.prompt + before.said)[same:]
    return await server.tokens(DROPPED.split(lost, maxsplit=1)[0], apart=True)


BEGINS = "<context>\n"  # each message of a person
MARKS = 120  # characters between an answer and the next message, at most: new ones
CUT = "\0"
SLACK = 2  # tokens at the seam of what is compared; the last one of a prompt is always read


def known_before(before: str) -> str:
    """What was said before a prompt's last message; marks of roles behind that are new."""
    ends = [before.rfind(act.words) + len(act.words) for act in ACTS if not act.tool]
    end = max(ends)
    return before[:end] if len(before) - end <= MARKS else before


class Actor:
    """The model of one chat, saying what it is told to; a text is over when it was completed."""

    def __init__(self, model: OpenAIModel) -> None:
        self.asked: list[Asked] = []
        self._model = model
        self._texts: deque[tuple[str, int]] = deque()
        self._first = True

    def begin(self, texts: Sequence[tuple[str, int]]) -> None:
        self._texts, self._first = deque(texts), True

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        if not self._texts:
            raise ModelRefused(400, "more was asked than the script has")
        text, id = self._texts[0]
        spoken_request = replace(request, sampling={**request.sampling, **saying(id)})
        prompt = await self._model.rendered(request) or ""
        async with aclosing(self._model.stream(spoken_request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion) and piece.finish_reason != "cut":
                    self._texts.popleft()
                    self.asked.append(Asked(prompt, text, self._first, piece.cached_tokens or 0))
                    self._first = False
                yield piece

    async def window(self) -> int:
        return await self._model.window()

    async def count(self, request: Request) -> int:
        return await self._model.count(request)

    async def ahead(self, request: Request, *, changed: bool = False) -> Ahead | None:
        return await self._model.ahead(request, changed=changed)


class Ends:
    """Passes on the ends of turns alone."""

    def __init__(self, ended: "asyncio.Queue[TurnFinished]") -> None:
        self._ended = ended

    async def event(self, assignment: Assignment, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self._ended.put_nowait(event)

    async def waiting(self, chat: str, why: str) -> None: ...


class Server:
    """The server's own routes. Its model has each of `texts` as one token."""

    def __init__(self, endpoint: Endpoint, texts: Sequence[str] = ()) -> None:
        self.endpoint = endpoint
        self._texts = sorted(texts, key=len, reverse=True)

    async def __aenter__(self) -> "Server":
        headers = {"Authorization": f"Bearer {self.endpoint.api_key}"}
        connector = aiohttp.TCPConnector(force_close=True)
        self._session = aiohttp.ClientSession(
            self.endpoint.url, headers=headers, connector=connector
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def rendered(self, wire: Mapping[str, Any]) -> str:
        """Raises ValueError with the template's complaint."""
        found = await self._post("/apply-template", wire)
        if "prompt" not in found:
            raise ValueError(json.dumps(found))
        return str(found["prompt"])

    async def tokens(self, text: str, *, apart: bool = False) -> int:
        """How many tokens the text has; `apart`: as if no text of the script were one."""
        if apart:
            for literal in self._texts:
                half = len(literal) // 2
                text = text.replace(literal, literal[:half] + CUT + literal[half:])
        parts = [{"content": part, "add_special": False} for part in text.split(CUT)]
        found = [await self._post("/tokenize", part) for part in parts]
        return sum(len(one["tokens"]) for one in found)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        async with self._session.post(path, json=body) as answer:
            return await answer.json()
