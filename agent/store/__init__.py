"""The durable state: one SQLite file, the only SQL of the program.

async with open_store(state_dir / "voltaire.db") as store:
    await store.inbox.add(Incoming(...))

database.py       connections, transactions, migrations; the only file that knows aiosqlite
errors.py         a full disk, a lock, a damaged file as sentences
chats.py          chats, their settings, conversations, plans and files
inbox.py          messages that came in
turns.py          turns, open and ended
transcript.py     every message, and which stand in the prompt
pictures.py       the bytes of pictures in prompts, by hash
terms.py          the terms of texts and queries for full-text search, in any script
search.py         full-text search; vectors of notes and messages
documents.py      documents of chats and folders, in passages
notes.py          lasting notes
outbox.py         messages to be sent
approvals.py      questions to owners, standing permissions, the stop of all tools and jobs
jobs.py           scheduled jobs; their due times, runs and results
people.py         who may talk, pairing codes; chats of one person
usage.py          tokens of each model call; what each chat has used of its daily budget
overview.py       queries of the owner's page
key_values.py     small values of the program itself
set_aside.py      counts crashes, and tells what was set aside
ledger.py         what was asked, decided, reached and changed, as a chain of hashes
taints.py         strangers' text in conversations; web addresses that a chat knows
retention.py      deletion by age, VACUUM
backup.py         snapshots, copies
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.store.approvals import ApprovalTable, FreezeTable
from agent.store.chats import ChatTable, FileTable, PlanTable
from agent.store.database import Clock, Database, open_database
from agent.store.documents import DocumentTable
from agent.store.inbox import InboxTable, Incoming
from agent.store.jobs import JobTable, OccurrenceTable
from agent.store.key_values import KeyValueTable
from agent.store.ledger import LedgerTable
from agent.store.notes import NoteTable
from agent.store.outbox import OutboxTable
from agent.store.people import LinkTable, PeopleTable
from agent.store.search import EmbeddingTable, SearchTable
from agent.store.set_aside import SetAsideTable
from agent.store.taints import AddressTable, TaintTable
from agent.store.transcript import TranscriptTable
from agent.store.turns import TurnTable
from agent.store.usage import BudgetTable, UsageTable

__all__ = ["Incoming", "Store", "open_store"]


class Store:
    """The tables of one database; `attempts` is the folder of SetAsideTable."""

    def __init__(self, database: Database, attempts: Path) -> None:
        self.database = database
        self.clock = database.clock
        self.chats = ChatTable(database)
        self.inbox = InboxTable(database)
        self.turns = TurnTable(database)
        self.transcript = TranscriptTable(database)
        self.notes = NoteTable(database)
        self.links = LinkTable(database)
        self.search = SearchTable(database)
        self.embeddings = EmbeddingTable(database)
        self.documents = DocumentTable(database)
        self.outbox = OutboxTable(database)
        self.approvals = ApprovalTable(database)
        self.people = PeopleTable(database)
        self.jobs = JobTable(database)
        self.occurrences = OccurrenceTable(database)
        self.usage = UsageTable(database)
        self.files = FileTable(database)
        self.key_values = KeyValueTable(database)
        self.taints = TaintTable(database)
        self.set_aside = SetAsideTable(database, attempts)
        self.ledger = LedgerTable(database)
        self.budgets = BudgetTable(database)
        self.freeze = FreezeTable(database)
        self.plans = PlanTable(database)
        self.addresses = AddressTable(database)


@asynccontextmanager
async def open_store(path: Path, clock: Clock = time.time) -> AsyncIterator[Store]:
    """Open or create the state's database; raises store.errors.StoreError with a plain sentence."""
    async with open_database(path, clock) as database:
        attempts = path.with_name("attempts")
        attempts.mkdir(mode=0o700, exist_ok=True)
        yield Store(database, attempts)
