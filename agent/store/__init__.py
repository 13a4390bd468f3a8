"""The durable state: one SQLite file, the only SQL of the program.

async with open_store(state_dir / "voltaire.db") as store:
    await store.inbox.add(Incoming(...))

database.py    connections, transactions, migrations; the only file that knows aiosqlite
chats.py       chats, their settings and conversations
inbox.py       what was said to us        turns.py      what is being answered
transcript.py  what was said, for ever    leases.py     one turn at a time per chat
notes.py       lasting notes              search.py     words found again
outbox.py      what is to be sent         approvals.py  what owners decided
jobs.py        planned work, its ledger   people.py     who may talk
usage.py       tokens of each call        files.py      files, small facts
retention.py   what leaves               upkeep.py     snapshots, VACUUM, backup
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.store.approvals import ApprovalTable
from agent.store.chats import ChatTable, Clock
from agent.store.database import Database, open_database
from agent.store.embeddings import MeaningTable
from agent.store.files import FactTable, FileTable
from agent.store.inbox import InboxTable, Incoming
from agent.store.jobs import JobTable
from agent.store.leases import LeaseTable
from agent.store.notes import NoteTable
from agent.store.outbox import OutboxTable
from agent.store.people import PeopleTable
from agent.store.search import SearchTable
from agent.store.transcript import TranscriptTable
from agent.store.turns import TurnTable
from agent.store.usage import UsageTable

__all__ = ["Incoming", "Store", "open_store"]


@dataclass(frozen=True)
class Store:
    database: Database
    clock: Clock
    chats: ChatTable
    inbox: InboxTable
    turns: TurnTable
    leases: LeaseTable
    transcript: TranscriptTable
    notes: NoteTable
    search: SearchTable
    outbox: OutboxTable
    approvals: ApprovalTable
    people: PeopleTable
    jobs: JobTable
    usage: UsageTable
    files: FileTable
    facts: FactTable
    meanings: MeaningTable


@asynccontextmanager
async def open_store(path: Path, clock: Clock = time.time) -> AsyncIterator[Store]:
    """Open or create the state's database; raises store.errors.StoreError with a plain sentence."""
    async with open_database(path) as database:
        yield Store(
            database,
            clock,
            ChatTable(database, clock),
            InboxTable(database, clock),
            TurnTable(database, clock),
            LeaseTable(database, clock),
            TranscriptTable(database, clock),
            NoteTable(database, clock),
            SearchTable(database),
            OutboxTable(database, clock),
            ApprovalTable(database, clock),
            PeopleTable(database, clock),
            JobTable(database, clock),
            UsageTable(database, clock),
            FileTable(database, clock),
            FactTable(database),
            MeaningTable(database),
        )
