"""Chats, their conversations and plans, and files that were received or sent in them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, TypeAdapter

from agent.plan import Plan, PlanStep, WrongPlan
from agent.store.database import Database, Row, Transaction
from agent.store.key_values import PUT
from agent.store.ledger import record

ENDED = "ended:"  # and a chat: key of the value that stands while the backend may hold prompts of what was ended

STEPS = TypeAdapter(tuple[tuple[str, bool], ...], config=ConfigDict(defer_build=True))


def decoded_plan(column: str | None) -> Plan:
    return tuple(PlanStep(*each) for each in STEPS.validate_json(column)) if column else ()


@dataclass(frozen=True)
class PlanTable:
    database: Database

    async def of_turn(self, turn: str) -> Plan:
        """The plan of the turn's conversation."""
        sql = (
            "SELECT plan FROM conversations"
            " WHERE id = (SELECT conversation FROM turns WHERE id = ?)"
        )
        return decoded_plan(await self.database.value(sql, turn))

    async def of_chat(self, chat: str) -> Plan:
        """The plan of the chat's current conversation."""
        sql = (
            "SELECT plan FROM conversations"
            " WHERE id = (SELECT conversation FROM chats WHERE key = ?)"
        )
        return decoded_plan(await self.database.value(sql, chat))

    async def change(self, chat: str, correct: Callable[[Plan], Plan], turn: str = "") -> Plan:
        """Replace the plan by `correct(plan)` in one transaction and return it. `turn` is the turn that keeps
        the plan, "" when a person corrects it. Raises WrongPlan when there is no conversation to have one."""
        async with self.database.write() as tx:
            row = await tx.one(
                "SELECT id, plan FROM conversations WHERE id = CASE ?1"
                " WHEN '' THEN (SELECT conversation FROM chats WHERE key = ?2)"
                " ELSE (SELECT conversation FROM turns WHERE id = ?1) END",
                turn,
                chat,
            )
            if row is None:
                raise WrongPlan("There is no task to plan here.")
            known = decoded_plan(row[1])
            changed = correct(known)
            if changed != known or turn:
                steps = json.dumps([astuple(each) for each in changed]) if changed else None
                sql = (
                    "UPDATE conversations SET plan = ?2, plan_turn = coalesce(nullif(?3, ''), plan_turn)"
                    " WHERE id = ?1"
                )
                await tx.run(sql, row[0], steps, turn)
        return changed


async def end_plan(tx: Transaction, conversation: int, turn: str) -> None:
    """Delete the plan at the end of a turn if it is done, or if this turn did not keep it."""
    sql = (
        "UPDATE conversations SET plan = NULL WHERE id = ?1 AND plan IS NOT NULL AND (plan_turn <> ?2"
        " OR NOT EXISTS (SELECT 1 FROM json_each(plan) WHERE NOT json_extract(value, '$[1]')))"
    )
    await tx.run(sql, conversation, turn)


SETTINGS = TypeAdapter(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Chat:
    """`timezone` is empty for the agent's; `conversation` is the current one, None before the first, and
    `plan` the plan of its task. Nothing is sent to a `blocked` chat: its person has blocked the bot.
    `language` is that of the last sender's app, "" if unknown."""

    key: str
    title: str
    timezone: str
    settings: Mapping[str, Any]
    conversation: int | None
    blocked: bool
    active_at: float
    plan: Plan = ()
    language: str = ""

    @property
    def chosen_language(self) -> str:
        """The language chosen in /settings; "" when it follows the sender's app."""
        return str(self.settings.get("language") or "")

    @property
    def spoken(self) -> str:
        """The language of the program's own texts in the chat, "" if unknown."""
        return self.chosen_language or self.language

    @property
    def thinking(self) -> int | None:
        """The thinking budget of its turns (agent.model.Request.thinking); None: the model profile's."""
        found = self.settings.get("thinking")
        return found if isinstance(found, int) else None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation in a list; `current`: it gets the next message."""

    id: int
    title: str
    created_at: float
    active_at: float
    current: bool


@dataclass(frozen=True)
class ChatTable:
    database: Database

    async def get(self, key: str) -> Chat | None:
        row = await self.database.one(CHAT, key)
        return decode_chat(row) if row else None

    async def spoken(self, key: str) -> str:
        """The language of a chat's fixed texts, "" if unknown."""
        known = await self.get(key)
        return known.spoken if known else ""

    async def open(self, key: str, title: str = "", language: str = "") -> Chat:
        """The chat, created if it is new; a title or a language given replaces an older one."""
        async with self.database.write() as tx:
            await ensure(tx, key, title, language)
        chat = await self.get(key)
        assert chat
        return chat

    async def recent(self, limit: int = 100) -> list[Chat]:
        """The chats used last, newest first."""
        sql = f"SELECT {_COLUMNS} FROM chats ORDER BY active_at DESC LIMIT ?"
        return [decode_chat(row) for row in await self.database.all(sql, limit)]

    async def count(self) -> int:
        return int(await self.database.value("SELECT count(*) FROM chats"))

    async def set(self, key: str, by: str = "", /, **settings: Any) -> Chat:
        """Change settings of the chat; None removes one. `by` names who did it."""
        old = await self.open(key)
        new = {k: v for k, v in {**old.settings, **settings}.items() if v is not None}
        async with self.database.write() as tx:
            await tx.run("UPDATE chats SET settings = ? WHERE key = ?", json.dumps(new), key)
            await record(tx, "admin", key, act="settings", to=json.dumps(settings), by=by)
        return replace(old, settings=new)

    async def set_timezone(self, key: str, timezone: str, by: str = "") -> None:
        """Set an IANA name, or "" for the agent's; ValueError for one that this machine does not know."""
        if timezone:
            try:
                ZoneInfo(timezone)
            except (OSError, KeyError) as error:
                raise ValueError(f"{timezone} is not a time zone of this machine") from error
        async with self.database.write() as tx:
            await ensure(tx, key)
            await tx.run("UPDATE chats SET timezone = ? WHERE key = ?", timezone, key)
            await record(tx, "admin", key, act="settings", to=f"timezone {timezone}", by=by)

    async def set_blocked(self, key: str, blocked: bool) -> None:
        """Record whether the chat's person has blocked the bot. A message from the chat unblocks it, too."""
        sql = "UPDATE chats SET resting = ? WHERE key = ?"
        await self.database.execute(sql, blocked, key)

    async def rename(self, old: str, new: str) -> bool:
        """Follow a group whose id has changed, with its used budget and known hosts; False when `old` is
        unknown or `new` is taken."""
        sql = (
            "UPDATE chats SET key = ?1 WHERE key = ?2"
            " AND NOT EXISTS (SELECT 1 FROM chats WHERE key = ?1) RETURNING 1"
        )
        async with self.database.write() as tx:
            renamed = await tx.all(sql, new, old)
            for table in ("budgets", "known_hosts") if renamed else ():
                await tx.run(f"UPDATE OR REPLACE {table} SET chat = ?1 WHERE chat = ?2", new, old)
            if renamed:
                await record(tx, "admin", old, act="rename", to=new)
        return bool(renamed)

    async def forget(self, key: str, by: str = "") -> None:
        """Delete a chat with everything that belongs to it but its rows in the ledger."""
        async with self.database.write() as tx:
            # Triggers remove its index entries, and need the chat's row for that.
            sql = "DELETE FROM transcript WHERE conversation IN (SELECT id FROM conversations WHERE chat = ?)"
            await tx.run(sql, key)
            await tx.run("DELETE FROM notes WHERE chat = ?", key)
            await tx.run("DELETE FROM chats WHERE key = ?", key)
            await tx.run(PUT, ENDED + key, "true")
            await record(tx, "admin", key, act="forget", by=by)

    async def new_conversation(self, key: str) -> int:
        async with self.database.write() as tx:
            await ensure(tx, key)
            await tx.run(PUT, ENDED + key, "true")
            return await begin_conversation(tx, key)

    async def resume(self, key: str, conversation: int) -> bool:
        """Make an older conversation of that chat the current one; False when it is not of that chat."""
        sql = (
            "UPDATE chats SET conversation = ?1 WHERE key = ?2 AND EXISTS"
            " (SELECT 1 FROM conversations WHERE id = ?1 AND chat = ?2) RETURNING 1"
        )
        return bool(await self.database.execute(sql, conversation, key))

    async def conversations(self, key: str, limit: int = 20) -> list[ConversationRow]:
        """The chat's conversations that hold messages, last used first."""
        rows = await self.database.all(_CONVERSATIONS, key, limit)
        return [ConversationRow(*row) for row in rows]


_COLUMNS = (
    "key, title, timezone, settings, conversation, resting, active_at,"
    " (SELECT plan FROM conversations WHERE id = chats.conversation), language"
)
CHAT = f"SELECT {_COLUMNS} FROM chats WHERE key = ?"
_CONVERSATIONS = """
SELECT c.id, c.title, c.created_at, c.active_at, chats.conversation IS c.id
FROM conversations c JOIN chats ON chats.key = c.chat
WHERE c.chat = ? AND EXISTS (SELECT 1 FROM transcript t WHERE t.conversation = c.id)
ORDER BY c.active_at DESC, c.id DESC LIMIT ?
"""


def decode_chat(row: Row) -> Chat:
    """The chat in a row of CHAT."""
    key, title, timezone, settings, conversation, blocked, active, plan, language = row
    known = SETTINGS.validate_json(settings)
    task = decoded_plan(plan)
    return Chat(key, title, timezone, known, conversation, bool(blocked), active, task, language)


async def ensure(tx: Transaction, key: str, title: str = "", language: str = "") -> None:
    """Create the chat's row if it is new, and record its use."""
    sql = (
        "INSERT INTO chats (key, number, title, created_at, active_at, language)"
        " VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM chats), ?2, ?3, ?3, ?4)"
        " ON CONFLICT (key) DO UPDATE SET active_at = ?3,"
        " title = CASE ?2 WHEN '' THEN title ELSE ?2 END,"
        " language = CASE ?4 WHEN '' THEN language ELSE ?4 END"
    )
    await tx.run(sql, key, title, tx.now, language)


async def current_conversation(tx: Transaction, key: str) -> int:
    """Return the chat's current conversation, creating one if needed."""
    found = await tx.value("SELECT conversation FROM chats WHERE key = ?", key)
    return int(found) if found is not None else await begin_conversation(tx, key)


async def begin_conversation(tx: Transaction, key: str) -> int:
    [number] = await tx.insert_returning(
        "id", "conversations", chat=key, created_at=tx.now, active_at=tx.now
    )
    await tx.run("UPDATE chats SET conversation = ? WHERE key = ?", number, key)
    return int(number)


@dataclass(frozen=True)
class FileTable:
    """Which files of a workspace were received: an app's id of each, by its path there."""

    database: Database

    async def add(self, chat: str, path: str, remote: str) -> None:
        async with self.database.write() as tx:
            await ensure(tx, chat)
            sql = "INSERT INTO files (chat, path, remote) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            await tx.run(sql, chat, path, remote)

    async def remote(self, chat: str, path: str) -> str | None:
        sql = "SELECT remote FROM files WHERE chat = ? AND path = ?"
        found: str | None = await self.database.value(sql, chat, path)
        return found
