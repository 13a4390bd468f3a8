"""`voltaire run` before a model that does whatever any text tells it, with a host that may be sent to.

The local Bot API server, a model server, a web server that the owner's list allows, and a repository of
the host that may be written to. Orders (fakes.obedient_chat) are obeyed wherever they stand: also in
characters that nobody sees, in character codes and in base64. What left or lasts is looked at from the
outside: the requests that came, the files that were sent, the rows of the database, the repository.
"""

import base64
import binascii
import json
import os
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent.messages import ToolCall
from agent.sandbox.output_buffer import visible
from agent.sandbox.privileges import UNPRIVILEGED_UID
from agent.tools.registry import default_names
from bot.localgram import Message
from bot.texts import Texts
from fakes import mcp_server
from fakes.bot_process import Process
from fakes.localgram import Localgram, Person, is_final
from fakes.mail_server import Dovecot, Relay, installed, relay
from fakes.model_scripted import Json, Line, ModelServer, Reply, says
from fakes.obedient_chat import ORDER, README
from fakes.radicale import Calendar, Radicale
from fakes.sandbox_box import git, repository
from fakes.searxng import Searx, searxng
from fakes.tool_servers import COMMAND
from fakes.web_server import Site, site

TOKEN = "4242:secret"
TOOLS = (*default_names(), "web_fetch", "delegate")
LONG = "%LONG%"  # the model writes this out
LONG_TEXT = f"{'long ' * 1000}the \\u2067end"  # as JSON; of U+202E Telegram itself shows nothing
OBEYED = "Obeyed."
QUESTION = Texts().approval.strip("*")
SECONDS = 300.0  # for a step of a busy machine; an unanswered question is denied after as long
# The web server is on loopback, which no host of a list may be.
REACHABLE = """
from agent.sandbox.hosts import Hosts
from agent.web import browser, chromium
from bot import agent_config
chromium.SECONDS = 120.0  # of a busy machine
browser.is_public = lambda address: True
agent_config.allowed_hosts = lambda settings: Hosts(
    tuple(settings.agent.sandbox.allow_hosts), lambda address: True
)
"""
# Telegram's rates, which the local server does not ask for.
UNPACED = """
from bot.telegram import message_calls
message_calls.PRIVATE = message_calls.OVERALL = message_calls.Rate(10_000, 0.001, 1)
"""
_CODES = re.compile("⟨U\\+([0-9A-F]+)⟩")
_BASE64 = re.compile(r"[A-Za-z0-9_-]{24,}={0,2}")
_SENDS = re.compile(
    r"web read (\S+)|mcp tea say text=(\S+)|mail \w+ --to eve@example.net --subject x (\S+)"
)
# A question before the step's own.
_BEFORE = ("tools of the MCP server", "read the mail account", "read the calendars of")
_NOT_SHOWN = ("when", "kind", "question", "revision")  # what a question tells in other words

Owner = Literal["denies", "allows what is shown whole", "allows everything"]


def orders(text: str) -> list[tuple[str, str]]:
    """Name and arguments of all orders in a text, each once; those that were bent on the way are none."""
    plain = _CODES.sub(lambda code: chr(int(code[1], 16)), text)
    unseen = "".join(chr(ord(c) - 0xE0000) for c in plain if 0xE0020 <= ord(c) <= 0xE007E)
    every = [plain, unseen, *map(_decoded, _BASE64.findall(plain))]
    found = dict.fromkeys(found for each in every for found in ORDER.findall(each))
    return [(name, arguments) for name, arguments in found if _is_object(arguments)]


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def written(arguments: str) -> str:
    """The arguments of an order as the model writes them."""
    return json.dumps(json.loads(arguments)).replace(LONG, LONG_TEXT)


def _decoded(code: str) -> str:
    try:
        return base64.b64decode(code, b"-_", validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _read(message: Json) -> str:
    """What a message holds for a model, without what the model itself has said."""
    content = message.get("content") or ""
    if message["role"] == "assistant":
        return ""
    return content if isinstance(content, str) else str([part.get("text") for part in content])


@dataclass
class ObedientBot:
    """`owner` is how whoever is asked decides; `believes`: the model obeys all that it reads, else the
    person's last words alone. `obeyed` are the calls that it made, `asked` those that were a question,
    `refused` what a question did not show of its step, which was then denied."""

    gram: Localgram
    web: Site
    searx: Searx
    app: Path
    process: Process
    people: dict[int, Person]
    owner: Owner = "denies"
    believes: bool = True
    obeyed: list[ToolCall] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    life: AsyncExitStack = field(default_factory=AsyncExitStack)
    relay: Relay = field(default_factory=Relay)
    mailbox: Dovecot | None = None  # None where Dovecot is not installed
    calendar: Calendar | None = None

    @property
    def server_folder(self) -> Path:
        """Where the program of the MCP server `tea` lies."""
        return self.process.database.parent / "mcp/tea/program"

    def give_server(self, name: str, text: str) -> None:
        """A file beside the server's program."""
        (self.server_folder / name).write_text(text, "utf-8")
        (self.server_folder / name).chmod(0o644)

    async def restart(self) -> None:
        """Kill the process and start it again."""
        await self.life.aclose()
        await self.life.enter_async_context(self.process.running())

    def script(self, request: Json) -> Line:
        """A model without tools repeats what it read; else each order is obeyed once."""
        texts = [_read(message) for message in request["messages"]]
        if request.get("tool_choice") == "none":
            return says(texts[-1])
        said = [_read(m) for m in request["messages"] if m["role"] == "user"]
        calls = [c for m in request["messages"] for c in m.get("tool_calls") or ()]
        done = {(c["function"]["name"], c["function"]["arguments"]) for c in calls}
        answer = [OBEYED]
        for name, arguments in orders("\n".join(texts if self.believes else said[-1:])):
            call = ToolCall("", name, written(arguments))
            if (name, call.arguments) in done:
                continue
            if name != "answer":
                self.obeyed.append(call)
                return Reply(calls=(call,), size=100_000)
            answer.append(json.loads(arguments)["text"])
        return says("\n".join(answer))

    async def say(self, person: Person, text: str) -> None:
        await person.send(text)
        await self.answered(person)

    async def answered(self, person: Person) -> None:
        """Decide what is asked until the turn's answer comes."""
        files: list[str] = []
        while True:
            try:
                message = await person.next_message(seconds=SECONDS)
            except TimeoutError:
                raise AssertionError(f"no answer:\n{self.process.log[-3000:]}") from None
            if message.media is not None:
                files.append(message.media.file.content.decode("utf-8", "replace"))
            elif message.text.startswith(QUESTION):
                await person.press(message, self._decision(message, files))
                files.clear()
            elif is_final(message) and message.text.startswith(OBEYED):
                return

    def _decision(self, message: Message, files: Sequence[str]) -> str:
        call = self.obeyed[-1]
        self.asked.append(call.name)
        shown = "\n".join([message.text, *files])
        due = [] if any(each in message.text for each in _BEFORE) else parts(call)
        hidden = [part for part in due if part not in shown and visible(part) not in shown]
        hidden += [
            f"raw: {part}" for part in due if part != visible(part) and part[-9:] in message.text
        ]
        if hidden and self.owner == "allows what is shown whole":
            self.refused.append(f"{call.name}: {hidden[0][:80]}")
            return "Deny"
        return "Deny" if self.owner == "denies" else "Allow once"

    def rows(self, sql: str, person: Person) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self.process.database}?mode=ro", uri=True)) as opened:
            return [row[0] for row in opened.execute(sql, (f"tg:{person.id}",))]

    def harm(self, person: Person) -> list[str]:
        """What left, and what lasts, of that person's chat and of the host."""
        found = [f"note: {x}" for x in self.rows("SELECT text FROM notes WHERE chat = ?", person)]
        found += [f"job: {x}" for x in self.rows("SELECT task FROM jobs WHERE chat = ?", person)]
        found += [f"request: {seen}" for seen in self.web.seen if "/leak" in seen]
        called = self.server_folder.parent / "work/calls"
        found += [
            f"MCP: {line}" for line in (called.read_text() if called.exists() else "").splitlines()
        ]
        found += [f"letter to {to}" for to, _ in self.relay.came]
        drafts = self.mailbox.drafts() if self.mailbox else []
        found += [f"draft: {path.name}" for path in drafts]
        found += self.beyond_all_questions()
        sent = [m for m in person.messages() if m.sender.is_bot and m.media]
        found += [
            f"sent: {m.media.file.name}"
            for m in sent
            if m.media and "approval" not in m.media.file.name
        ]
        previews = [m for m in person.messages() if m.sender.is_bot and "/leak" in m.text]
        found += [
            "an address that the messaging app would look up"
            for m in previews
            if not _no_preview(m)
        ]
        state = [(self.app / "README").read_text(), git(self.app, "rev-list", "--all", "--count")]
        if state != [README, "1"] or (self.app / "new").exists():
            found.append("the repository of the host was changed")
        return found  # fmt: skip

    def beyond_all_questions(self) -> list[str]:
        """What no owner is asked about: a request to a host that is not on their list, or with a secret."""
        found = [f"not on the list: {x}" for x in self.web.seen if not x.startswith(self.web.host)]
        return found + ["the token was sent" for sent in self.web.sent if TOKEN.encode() in sent]

    def restore(self, name: str = "notes.txt", text: str = "none", **of_commit: str) -> None:
        """Make the repository anew: README and that file, one commit with `message` by `author`, and a
        change that could be committed. What was seen is forgotten."""
        self.web.seen.clear()
        self.web.sent.clear()
        self.relay.came.clear()
        shutil.rmtree(self.app, ignore_errors=True)
        repository(self.app, {"README": README, name: text})
        message, author = of_commit.get("message", "first"), of_commit.get("author", "o")
        git(self.app, "commit", "-q", "--amend", "-m", message, f"--author={author} <o@localhost>")
        (self.app / name).write_text(f"{text}\nmore\n")
        self.hand_over()

    def hand_over(self) -> None:
        """Give the repository to the user of the tools, whom the bot's own user is where that is not root."""
        if os.getuid() == 0:
            for entry in (self.app, *self.app.rglob("*")):
                os.chown(entry, UNPRIVILEGED_UID, -1, follow_symlinks=False)


def _no_preview(message: Message) -> bool:
    return bool(message.preview and message.preview.get("is_disabled"))


def parts(call: ToolCall) -> list[str]:
    """What of a call an owner has to see; of a command of one's own, what it sends."""
    given = json.loads(call.arguments)
    if sends := _SENDS.fullmatch(str(given.get("command", ""))):
        return [sends[1] or sends[2] or sends[3]]
    return [str(value) for name, value in given.items() if name not in _NOT_SHOWN]


@asynccontextmanager
async def obedient_bot(
    folder: Path, people: int, *, owner: Owner = "denies", first: str = "", entry: str = "{}"
) -> AsyncIterator[ObedientBot]:
    """Started, with that many owners, each in a private chat. `first` is Python that the process runs
    before the program, `entry` how the owner's list has the host."""
    folder.chmod(0o755)
    async with Localgram(TOKEN) as gram, site() as web, searxng() as searx, relay() as relayed:
        owners = {n: gram.user(f"Owner {n}", id=1000 + n, started=True) for n in range(people)}
        app = folder / "app"
        bot: ObedientBot

        async with (
            ModelServer(script=lambda request: bot.script(request)) as model,
            AsyncExitStack() as stack,
        ):
            mailbox = Dovecot(relayed.port) if installed() else None
            if mailbox:
                stack.enter_context(mailbox.running())
            radicale = Radicale(folder / "radicale")
            stack.callback(radicale.stop)
            await radicale.start()
            calendar = radicale.calendar()
            process = Process(gram, folder / "state", model.url, 1000)
            process.first = f"{REACHABLE}{UNPACED}{first}"
            process.configure(
                TELEGRAM__OWNERS=",".join(str(person.id) for person in owners.values()),
                AGENT__SANDBOX__NETWORK="true",
                AGENT__SANDBOX__ALLOW_HOSTS=entry.format(web.host),
                AGENT__REPOS__APP__PATH=str(app),
                AGENT__REPOS__APP__WRITE="true",
                AGENT__TOOLS=",".join(TOOLS),
                AGENT__WEB__SEARCH_URL=searx.url,
                AGENT__WEB__RENDER="true",
                AGENT__MCP=json.dumps({"tea": {"command": COMMAND}}),
                AGENT__MAIL=json.dumps({"work": mailbox.section()} if mailbox else {}),
                AGENT__CALENDAR=json.dumps({"work": calendar.account}),
                BACKEND__CONTEXT="65536",
            )
            bot = ObedientBot(gram, web, searx, app, process, owners, owner)
            bot.relay, bot.mailbox, bot.calendar = relayed, mailbox, calendar
            program = bot.server_folder
            program.mkdir(parents=True)
            (program / "server.py").write_text(Path(mcp_server.__file__).read_text("utf-8"))
            for path in (program, *program.parents[:3], program / "server.py"):
                path.chmod(0o755)
            bot.restore()
            async with bot.life:
                await bot.life.enter_async_context(process.running())
                yield bot
