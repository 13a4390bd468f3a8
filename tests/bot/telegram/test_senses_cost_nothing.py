"""Pictures and voice cost a chat that has neither nothing: no statement, no module, no byte of a prompt."""

import re
from collections import Counter
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import NamedTuple

from bot.localgram import Localgram, is_final
from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.model_scripted import ModelServer, says
from fakes.patience import soon
from tests.bot.cli.test_imports import ABILITIES

TURNS = 4
STATEMENTS = (
    75  # of a plain turn from its message to its delivered answer, and what is read ahead after it
)
SENSES = {"AGENT__TRANSCRIBE_URL": "http://127.0.0.1:9", "BACKEND__VISION": "true"}
LOOK = """
import atexit, sqlite3, sys
plain, log = sqlite3.connect, open({log!r}, "a", buffering=1)
def connect(*values, **options):
    connection = plain(*values, **options)
    connection.set_trace_callback(lambda sql: log.write(" ".join(sql.split()) + chr(10)))
    return connection
sqlite3.connect = connect
atexit.register(lambda: open({modules!r}, "w").write(" ".join(sorted(sys.modules))))
"""


class PlainTurns(NamedTuple):
    """`statements` of each kind in each turn but the first; `prompts` are lengths in bytes."""

    statements: list[Counter[str]]
    modules: set[str]
    prompts: list[int]


async def plain_turns(gram: Localgram, folder: Path, **settings: str) -> PlainTurns:
    folder.mkdir()
    log, modules = folder / "statements", folder / "modules"
    olga = gram.user("Olga Owner", id=OWNER, started=True)
    async with ModelServer(script=lambda request: says("Hello."), extras=True) as model:
        process = Process(gram, folder, model.url, OWNER)
        process.first = LOOK.format(log=str(log), modules=str(modules))
        process.configure(**settings)
        turns = list[list[str]]()
        async with process.running():
            for number in range(TURNS):
                begins = len(log.read_text().splitlines()) if log.exists() else 0
                await olga.send(f"good morning {number}")
                await olga.next_message(where=is_final)
                await soon(lambda: is_over(log.read_text(), len(turns)))
                turns.append(log.read_text().splitlines()[begins:])
            await process.stop()
        return PlainTurns(
            [Counter(map(kind, filter(ours, turn))) for turn in turns[1:]],
            set(modules.read_text().split()),
            [len(body) for body in model.bodies],
        )


def is_over(log: str, number: int) -> bool:
    """Whether the answer of that turn is marked delivered, and the outbox was then found empty."""
    *delivered, after = log.split("SET state = 'delivered'")
    return len(delivered) == number + 1 and "FROM outbox WHERE chat" in after


def ours(statement: str) -> bool:
    """Not one that SQLite's search index runs by itself."""
    return not statement.startswith("--")


def kind(statement: str) -> str:
    return re.sub(r"'[^']*'|\d[\d.]*", "?", statement)


async def test_a_plain_chat_pays_nothing_for_pictures_and_voice(
    gram: Localgram, tmp_path: Path
) -> None:
    plain = await plain_turns(gram, tmp_path / "plain")
    senses = await plain_turns(gram, tmp_path / "senses", **SENSES)
    # A worker on a busy machine looks once more for what waits: one turn's count is not another's.
    always, ever = reduce(and_, senses.statements), reduce(or_, plain.statements)
    assert always - ever == Counter()
    assert reduce(and_, plain.statements).total() <= STATEMENTS
    assert senses.modules == plain.modules
    loaded = {module for module in plain.modules if module.startswith(ABILITIES)}
    assert loaded == {"bot.voice", "bot.voice.replies"}
    assert senses.prompts == plain.prompts
