"""Files that came with messages or were sent."""

from dataclasses import asdict, dataclass
from typing import Literal

from agent.store import chats
from agent.store.database import Database, columns


@dataclass(frozen=True, slots=True)
class ChatFile:
    """`path` is in the chat's workspace; `remote` the app's id of it; `size` in bytes."""

    chat: str
    path: str
    direction: Literal["in", "out"]
    name: str = ""
    mime: str = ""
    size: int = 0
    remote: str = ""
    message_id: str = ""


@dataclass(frozen=True)
class FileTable:
    database: Database

    async def add(self, file: ChatFile) -> int:
        async with self.database.write() as tx:
            await chats.ensure(tx, file.chat)
            [number] = await tx.insert_returning("id", "files", **asdict(file), at=tx.now)
        return int(number)

    async def recent(self, chat: str, limit: int = 20) -> list[ChatFile]:
        """Newest first."""
        sql = f"SELECT {columns(ChatFile)} FROM files WHERE chat = ? ORDER BY id DESC LIMIT ?"
        return [ChatFile(*row) for row in await self.database.all(sql, chat, limit)]
