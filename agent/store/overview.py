"""Queries of the owner's page beyond those of the tables. Nothing here writes, and a row that cannot be
decoded is shown as it is.

A turn's figures are computed from rows that exist anyway: its messages' arrival, its model calls, tool
runs, questions to owners and sent messages.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from agent.store.database import Database, Row
from agent.store.search import all_terms

TurnPart = Literal[
    "waiting", "reading", "thinking", "writing", "tools", "approvals", "sending", "other"
]
PARTS: tuple[TurnPart, ...] = get_args(TurnPart)
EXCERPT = 240  # characters of a text in a list
FOUND = 2_000  # newest messages that hold the words looked for
LOOKED_THROUGH = 2_000  # newest turns that a search without an index looks through
RECENT_DAYS = 30.0
DAY = 86_400.0
FOREVER = 1e11  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """Which turns to list; an empty field does not filter.

    Turns in whose messages all `words` stand, that took `slow` seconds at least, and that started
    before the last turn listed so far (`before`).
    """

    words: str = ""
    chat: str = ""
    tool: str = ""
    reason: str = ""
    slow: float = 0.0
    reread: bool = False
    before: float = 0.0


@dataclass(slots=True)
class TurnLine:
    """A turn as a list shows it. `seconds` is its time by part; the model's time is split between thinking
    and writing by their characters. `asked` and `answered` are excerpts."""

    id: str
    chat: str
    title: str
    kind: str
    state: str
    reason: str
    asked: str
    answered: str
    started_at: float
    ended_at: float | None
    feedback: int | None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reread: int = 0
    model_calls: int = 0
    tools: dict[str, int] = field(default_factory=dict)
    seconds: dict[TurnPart, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Overview:
    database: Database

    # -- turns -----------------------------------------------------------------

    async def turns(self, wanted: TurnFilter, limit: int = 50) -> list[TurnLine]:
        """The newest matching turns, newest first."""
        if wanted.words and not all_terms(wanted.words):
            return []
        conditions = _conditions(wanted)
        where = " AND ".join(condition for condition, _ in conditions) or "true"
        values = (value for _, given in conditions for value in given)
        newest = (
            f"SELECT id FROM turns t WHERE {where} ORDER BY t.started_at DESC, t.id DESC LIMIT ?"
        )
        return await self._lines(newest, *values, limit)

    async def turn(self, id: str) -> TurnLine | None:
        found = await self._lines("SELECT ?", id)
        return found[0] if found else None

    async def turns_of(self, ids: Collection[str]) -> list[TurnLine]:
        """The given turns, as far as they are kept, newest first."""
        return await self._lines("SELECT value FROM json_each(?)", json.dumps([*ids]))

    async def newest(self) -> tuple[int, int]:
        """The ids of the newest step and of the newest model call."""
        [(step, call)] = await self.database.all(
            "SELECT coalesce((SELECT max(id) FROM transcript), 0),"
            " coalesce((SELECT max(id) FROM usage), 0)"
        )
        return step, call

    async def since(
        self, step: int, call: int
    ) -> tuple[int, int, set[str], list[tuple[str, int, int, int, int]]]:
        """What came after these ids: the newest ids, the turns with new steps, and of each new model call
        its purpose and tokens of prompt, cached, read again and generated."""
        sql = (
            "SELECT id, purpose, coalesce(prompt_tokens, 0), coalesce(cached_tokens, 0), reread,"
            " coalesce(completion_tokens, 0) FROM usage WHERE id > ?"
        )
        async with self.database.read() as tx:
            steps, calls = await tx.batch(
                ("SELECT id, turn FROM transcript WHERE id > ?", (step,)), (sql, (call,))
            )
        last_step = max((row[0] for row in steps), default=step)
        last_call = max((row[0] for row in calls), default=call)
        turns = {row[1] for row in steps if row[1] is not None}
        return last_step, last_call, turns, [row[1:] for row in calls]

    async def open_turns(self) -> list[TurnLine]:
        """Turns that run or were cut off, the oldest first."""
        found = await self._lines("SELECT id FROM turns INDEXED BY turns_open WHERE state = 'open'")
        return found[::-1]

    async def _lines(self, ids_of: str, *values: Any) -> list[TurnLine]:
        """The turns whose ids a statement selects, newest first."""
        now = self.database.clock()
        async with self.database.read() as tx:
            wanted = json.dumps([row[0] for row in await tx.all(ids_of, *values)])
            rows = await tx.all(_TURNS, wanted)
            lines = {row[0]: TurnLine(*row) for row in rows}
            if not lines:
                return []
            ids = json.dumps(list(lines))
            first = min(line.started_at for line in lines.values())
            last = max(line.ended_at or now for line in lines.values())
            figures = await tx.batch(
                (_CALLS_OF, (first, last, ids)),
                (_WRITTEN_OF, (ids,)),
                (_TOOLS_OF, (ids,)),
                (_RUNS_OF, (ids, now)),
                (_APPROVALS_OF, (ids, now)),
                (_CAME_IN, (ids,)),
                (_SENT_OF, (ids,)),
            )
        _add_figures(lines, figures, now)
        return list(lines.values())

    async def turn_steps(self, id: str) -> list[dict[str, Any]]:
        """The turn's own messages, in full and in order."""
        return [_step(row) for row in await self.database.dicts(_STEPS, id)]

    async def prompt_of(self, id: str) -> tuple[list[dict[str, Any]], str, int]:
        """The newest 400 messages before the turn that still stand in the prompt, the conversation's
        summary, and how often it was compacted."""
        async with self.database.read() as tx:
            found = await tx.one(
                "SELECT c.id, c.summary, c.compacted, coalesce((SELECT min(id) FROM transcript"
                " WHERE turn = turns.id), 1 << 62) FROM turns JOIN conversations c ON c.id = conversation"
                " WHERE turns.id = ?",
                id,
            )
            if found is None:
                return [], "", 0
            conversation, summary, compacted, first = found
            rows = await tx.dicts(_BEFORE, conversation, first)
        return [_step(row) for row in reversed(rows)], summary, compacted

    async def records_of(self, id: str) -> dict[str, list[dict[str, Any]]]:
        """Model calls, tool runs, questions, messages that came in and that went out, of one turn."""
        async with self.database.read() as tx:
            return {name: await tx.dicts(sql, id) for name, sql in _RECORDS.items()}

    async def speeds(self) -> dict[str, Any]:
        """The last model calls of turns, the best of the last days (tokens/s), and the cached share of a day."""
        now = self.database.clock()
        async with self.database.read() as tx:
            recent = await tx.dicts(_RECENT_CALLS)
            [[(decode, prefill)], [(prompt, cached)]] = await tx.batch(
                (_BEST, (now - RECENT_DAYS * DAY,)), (_SHARE, (now - DAY,))
            )
        return {
            "recent": recent[::-1],
            "best_decode_tok_s": decode,
            "best_prefill_tok_s": prefill,
            "cached_share_day": cached / prompt if prompt else None,
        }

    async def tool_names(self) -> list[str]:
        """Names of the tools that were called lately."""
        return [name for (name,) in await self.database.all(_TOOL_NAMES)]

    # -- chats -----------------------------------------------------------------

    async def chats(self) -> list[dict[str, Any]]:
        """All chats, last used first, with how many notes and conversations each has."""
        return await self.database.dicts(
            "SELECT key AS chat, title, timezone, settings, resting AS blocked, active_at,"
            " (SELECT count(*) FROM notes WHERE chat = key AND deleted_at IS NULL) AS notes,"
            " (SELECT count(*) FROM conversations WHERE chat = key) AS conversations"
            " FROM chats ORDER BY active_at DESC LIMIT 500"
        )

    async def conversations(self, chat: str) -> list[dict[str, Any]]:
        return await self.database.dicts(
            "SELECT c.id, c.title, c.created_at, c.active_at, c.compacted,"
            " chats.conversation IS c.id AS current"
            " FROM conversations c JOIN chats ON chats.key = c.chat WHERE c.chat = ?"
            " ORDER BY c.active_at DESC, c.id DESC LIMIT 100",
            chat,
        )

    async def messages(self, conversation: int, before: int = 0) -> list[dict[str, Any]]:
        """A conversation's last 100 messages before a position (0: its end), oldest first. One with `live` 0 has left
        the prompt; `short` stands there instead of a shortened one."""
        rows = await self.database.dicts(_MESSAGES, conversation, before or 1 << 62)
        return [_step(row) for row in reversed(rows)]

    async def found(self, chat: str, words: str) -> list[dict[str, Any]]:
        """The newest 50 messages of one chat that hold all the words, newest first."""
        async with self.database.read() as tx:
            number = await tx.value("SELECT number FROM chats WHERE key = ?", chat)
            if number is None or not all_terms(words):
                return []
            rows = await tx.dicts(_FOUND, f"scope : c{number} AND - scope : ({all_terms(words)})")
        return [_step(row) for row in rows]

    async def notes(self, chat: str) -> list[dict[str, Any]]:
        """A chat's notes, lately deleted ones included; where each came from, and whether the current
        conversation's prompt shows it."""
        return await self.database.dicts(
            "SELECT n.id, n.text, n.pinned, n.saved_at, n.changed_at, n.deleted_at, n.stranger,"
            f" substr(t.text, 1, {EXCERPT}) AS source, t.turn AS source_turn, t.origin AS source_origin,"
            " EXISTS (SELECT 1 FROM notes_shown s JOIN chats c ON c.conversation = s.conversation"
            " WHERE s.note = n.id AND c.key = n.chat) AS in_prompt"
            " FROM notes n LEFT JOIN transcript t ON t.id = n.source WHERE n.chat = ?"
            " ORDER BY n.deleted_at IS NOT NULL, n.pinned DESC, n.id",
            chat,
        )

    # -- work and people -------------------------------------------------------

    async def jobs(self) -> list[dict[str, Any]]:
        """Active and paused jobs of all chats, the next due first."""
        return await self.database.dicts(
            "SELECT j.id, j.chat, c.title, kind, words, timing, j.timezone, task,"
            " catch_up, state, made_by, next_at, stranger"
            " FROM jobs j JOIN chats c ON c.key = j.chat WHERE state IN ('active', 'paused')"
            " ORDER BY next_at IS NULL, next_at, j.id LIMIT 500"
        )

    async def occurrences(self) -> list[dict[str, Any]]:
        """The latest 100 occurrences of all jobs."""
        return await self.database.dicts(
            "SELECT o.id, o.job, j.task, o.due_at, o.state, o.detail, o.turn, o.started_at, o.ended_at"
            " FROM occurrences o JOIN jobs j ON j.id = o.job ORDER BY o.due_at DESC, o.id DESC LIMIT 100"
        )

    async def deliveries(self) -> list[dict[str, Any]]:
        """Messages that are not delivered, then those of the newest 60 that are."""
        select = (
            "SELECT id, chat, turn, payload, state, message_ids, attempts, error, created_at, changed_at"
            " FROM outbox"
        )
        undelivered = await self.database.dicts(
            f"{select} WHERE state <> 'delivered' ORDER BY id DESC LIMIT 500"
        )
        newest = await self.database.dicts(f"{select} ORDER BY id DESC LIMIT 60")
        return [*undelivered, *(row for row in newest if row["state"] == "delivered")]

    async def waiting(self) -> list[dict[str, Any]]:
        """Messages that wait for their turn, oldest first."""
        return await self.database.dicts(
            f"SELECT i.id, i.chat, c.title, i.kind, substr(i.words, 1, {EXCERPT}) AS words, i.sender,"
            " i.received_at FROM inbox i INDEXED BY inbox_open JOIN chats c ON c.key = i.chat"
            " WHERE i.state <> 'done' AND i.state = 'waiting' ORDER BY i.id LIMIT 100"
        )

    async def questions(self, limit: int = 40) -> list[dict[str, Any]]:
        """Open questions to owners, then the newest answered ones. `title` is the chat's."""
        select = (
            "SELECT id, chat, turn, what, scope, state, decided_by, asked_at, expires_at, decided_at, because,"
            " (SELECT title FROM chats WHERE key = chat) AS title FROM approvals"
        )
        waiting = await self.database.dicts(
            f"{select} WHERE state = 'asked' AND expires_at > ? ORDER BY asked_at",
            self.database.clock(),
        )
        decided = await self.database.dicts(
            f"{select} WHERE state <> 'asked' ORDER BY asked_at DESC LIMIT ?", limit
        )
        return [*waiting, *decided]

    async def grants(self) -> list[dict[str, Any]]:
        """The standing permissions of all chats."""
        return await self.database.dicts(
            "SELECT chat, scope, granted_by, granted_at, (SELECT title FROM chats WHERE key = chat) AS title"
            " FROM grants ORDER BY chat, scope"
        )

    async def people(self) -> list[dict[str, Any]]:
        return await self.database.dicts(
            "SELECT source, person, name, role, added_by, added_at FROM people ORDER BY added_at"
        )

    async def ledger(self) -> list[dict[str, Any]]:
        """The newest 100 rows of the ledger."""
        sql = "SELECT number, at, kind, chat, facts FROM ledger ORDER BY number DESC LIMIT 100"
        return await self.database.dicts(sql)

    async def version(self) -> int:
        """A number that changes whenever another connection has written."""
        return int(await self.database.value("PRAGMA data_version"))


# -- searching turns ----------------------------------------------------------


def _conditions(wanted: TurnFilter) -> list[tuple[str, Sequence[Any]]]:
    """SQL conditions on a turn `t`, each with its values."""
    found: list[tuple[str, Sequence[Any]]] = []
    if wanted.before:
        found.append(("t.started_at < ?", [wanted.before]))
    if wanted.chat:
        found.append(("t.chat = ?", [wanted.chat]))
    if wanted.reason:
        found.append(("t.reason = ?", [wanted.reason]))
    if wanted.slow:
        found.append(("coalesce(t.ended_at, 1e11) - t.started_at >= ?", [wanted.slow]))
    if wanted.reread:
        found.append((_REREAD, []))
    if wanted.tool:
        since = wanted.before or FOREVER
        found.append((_CALLED_TOOL, [since, LOOKED_THROUGH, wanted.tool, wanted.tool]))
    if wanted.words:
        found.append((_SAID, [f"- scope : ({all_terms(wanted.words)})", FOUND]))
    return found


_TURNS = f"""
SELECT t.id, t.chat, c.title, t.kind, t.state, t.reason,
    coalesce((SELECT substr(group_concat(substr(words, 1, {EXCERPT}), char(10)), 1, {EXCERPT})
        FROM inbox WHERE turn = t.id),
        (SELECT substr(text, 1, {EXCERPT}) FROM transcript WHERE turn = t.id AND role = 'user'
            ORDER BY id LIMIT 1), ''),
    substr(t.text, 1, {EXCERPT}), t.started_at, t.ended_at, t.feedback
FROM json_each(?) n CROSS JOIN turns t ON t.id = n.value JOIN chats c ON c.key = t.chat
ORDER BY t.started_at DESC, t.id DESC
"""
_REREAD = "t.id IN (SELECT turn FROM usage WHERE reread > 0 AND purpose = 'turn')"
_SAID = """
t.id IN (SELECT turn FROM transcript WHERE id IN
    (SELECT rowid FROM said WHERE said MATCH ? AND rowid < 1 << 40 ORDER BY rowid DESC LIMIT ?))
"""
# instr() rules most rows out without decoding them; JSON escapes no character of a tool's name.
_CALLED_TOOL = """
t.id IN (SELECT n.id FROM
    (SELECT id FROM turns WHERE started_at < ? ORDER BY started_at DESC LIMIT ?) n WHERE EXISTS (
    SELECT 1 FROM transcript x WHERE x.turn = n.id AND x.role = 'tool' AND instr(x.extra, ?)
    AND x.extra ->> '$.name' = ?))
"""
_TOOL_NAMES = """
SELECT DISTINCT extra ->> '$.name' AS name FROM (SELECT extra FROM transcript
    WHERE role = 'tool' AND id > (SELECT coalesce(max(id), 0) - 4000 FROM transcript)) WHERE name IS NOT NULL ORDER BY name LIMIT 60
"""

# -- figures of turns ---------------------------------------------------------

_OF = "IN (SELECT value FROM json_each({}))"
_CALLS_OF = f"""
SELECT turn, count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(cached_tokens), 0),
    coalesce(sum(completion_tokens), 0), coalesce(sum(reread), 0), total(ttft_ms) / 1000.0,
    coalesce(sum(iif(decode_tok_s > 0, completion_tokens / decode_tok_s, 0)), 0)
FROM usage INDEXED BY usage_at WHERE at >= ?1 AND at <= ?2 + 1 AND turn {_OF.format("?3")}
AND purpose IN ('turn', 'sub-task') GROUP BY turn
"""
_WRITTEN_OF = f"""
SELECT turn, coalesce(sum(length(extra ->> '$.thought')), 0),
    sum(length(text) + coalesce(length(extra ->> '$.calls'), 0))
FROM transcript WHERE turn {_OF.format("?1")} AND role = 'assistant' GROUP BY turn
"""
_TOOLS_OF = f"""
SELECT turn, extra ->> '$.name', count(*) FROM transcript
WHERE turn {_OF.format("?1")} AND role = 'tool' GROUP BY 1, 2
"""
_RUNS_OF = f"""
SELECT turn, sum(coalesce(finished_at, ?2) - started_at) FROM tool_runs
WHERE turn {_OF.format("?1")} GROUP BY turn
"""
_APPROVALS_OF = f"""
SELECT turn, sum(coalesce(decided_at, min(expires_at, ?2)) - asked_at) FROM approvals
WHERE turn {_OF.format("?1")} GROUP BY turn
"""
_CAME_IN = f"SELECT turn, min(received_at) FROM inbox WHERE turn {_OF.format('?1')} GROUP BY turn"
_SENT_OF = f"""
SELECT turn, max(changed_at) - min(created_at) FROM outbox
WHERE turn {_OF.format("?1")} AND state = 'delivered' GROUP BY turn
"""
_RECENT_CALLS = """
SELECT at, prefill_tok_s, decode_tok_s, ttft_ms, prompt_tokens, cached_tokens FROM usage
WHERE purpose = 'turn' ORDER BY at DESC LIMIT 40
"""
_BEST = """
SELECT max(decode_tok_s), max(iif(prompt_tokens - cached_tokens > 256, prefill_tok_s, NULL)) FROM usage
WHERE at >= ? AND purpose = 'turn' AND completion_tokens >= 16
"""
_SHARE = """
SELECT coalesce(sum(prompt_tokens), 0), coalesce(sum(cached_tokens), 0) FROM usage
WHERE at >= ? AND purpose = 'turn'
"""


def _add_figures(lines: Mapping[str, TurnLine], figures: Sequence[list[Row]], now: float) -> None:
    calls, written, tools, runs, approvals, came_in, sent = figures
    for turn, count, prompt, cached, completion, reread, reading, generating in calls:
        line = lines[turn]
        line.model_calls, line.prompt_tokens, line.cached_tokens = count, prompt, cached
        line.completion_tokens, line.reread = completion, reread
        line.seconds["reading"] = reading
        line.seconds["writing"] = generating
    for turn, thought, said in written:
        generating = lines[turn].seconds.get("writing", 0.0)
        thinking = generating * thought / (thought + said) if thought + said else 0.0
        lines[turn].seconds |= {"thinking": thinking, "writing": generating - thinking}
    for turn, name, count in tools:
        lines[turn].tools[name or "?"] = count
    asked = {turn: seconds for turn, seconds in approvals if seconds}
    for turn, seconds in runs:  # a question is asked while its call runs
        lines[turn].seconds["tools"] = max(0.0, seconds - asked.get(turn, 0.0))
    for turn, seconds in asked.items():
        lines[turn].seconds["approvals"] = seconds
    for turn, received in came_in:
        lines[turn].seconds["waiting"] = max(0.0, lines[turn].started_at - received)
    for turn, seconds in sent:
        lines[turn].seconds["sending"] = max(0.0, seconds)
    for line in lines.values():
        inside = sum(s for part, s in line.seconds.items() if part not in ("waiting", "sending"))
        whole = (line.ended_at or now) - line.started_at
        line.seconds["other"] = max(0.0, whole - inside)
        line.seconds = {part: round(line.seconds.get(part, 0.0), 3) for part in PARTS}


# -- messages -----------------------------------------------------------------

_STEP = "id, position, turn, role, head, text, extra, short, live, own, at, origin, stranger"
_STEPS = f"SELECT {_STEP} FROM transcript WHERE turn = ? ORDER BY position"
_BEFORE = f"""
SELECT {_STEP} FROM transcript WHERE conversation = ? AND live = 1 AND id < ? ORDER BY position DESC LIMIT 400
"""
_MESSAGES = f"""
SELECT {_STEP} FROM transcript WHERE conversation = ? AND position < ? ORDER BY position DESC LIMIT 100
"""
_FOUND = f"""
SELECT {_STEP} FROM transcript WHERE id IN (SELECT rowid FROM said WHERE said MATCH ?)
ORDER BY id DESC LIMIT 50
"""
_RECORDS = {
    "calls": """
SELECT purpose, prompt_tokens, cached_tokens, new_tokens, completion_tokens, reread, difference,
    ttft_ms, prefill_tok_s, decode_tok_s, at
FROM usage INDEXED BY usage_at WHERE turn = ?1 AND at >= (SELECT started_at FROM turns WHERE id = ?1)
AND at <= 1 + coalesce((SELECT ended_at FROM turns WHERE id = ?1), 1e11) ORDER BY id
""",
    "runs": "SELECT call, started_at, finished_at FROM tool_runs WHERE turn = ? ORDER BY started_at",
    "approvals": """
SELECT id, call, what, scope, state, decided_by, asked_at, expires_at, decided_at, because
FROM approvals WHERE turn = ? ORDER BY asked_at
""",
    "received": """
SELECT id, source, ref, words, sender, kind, said_at, received_at FROM inbox WHERE turn = ? ORDER BY id
""",
    "sent": """
SELECT id, payload, state, message_ids, attempts, error, created_at, changed_at
FROM outbox WHERE turn = ? ORDER BY id
""",
}


def _step(row: dict[str, Any]) -> dict[str, Any]:
    """A turn's message, as the statement _STEP selects it, with its JSON decoded."""
    extra, short = json.loads(row["extra"] or "{}"), row["short"]
    return row | {
        **{name: extra.get(name, "") for name in ("thought", "name", "call")},
        "images": len(extra.get("images", ())),
        "calls": [
            {"id": id, "name": name, "arguments": arguments}
            for id, name, arguments in extra.get("calls", ())
        ],
        "short": json.loads(short)[0] if short else None,
    }
