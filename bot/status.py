"""The facts of `voltaire status` and of the bot's /status: gathered once, for both."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agent.store import Store
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import ServerStatus, Speed, Status
from bot import presence

PRESENCE = Path("run") / "bot.json"
SPEEDS = {"decode_tok_s", "prefill_tok_s", "ttft_ms", "cache_hit", "draft_acceptance"}


async def gather(state: Path, store: Store | None, backend: BackendClient) -> dict[str, Any]:
    """The JSON form of the contract. What is not known is None."""
    report: Status | None = None
    with suppress(BackendUnavailable):
        report = await backend.status()
    bot = presence.read(state / PRESENCE)
    server = (report.backend if report else ServerStatus(state="stopped")).model_dump(mode="json")
    if report is None:
        server |= {"kind": None, "restarts": None}
    counts: Mapping[Any, int] = await store.outbox.counts() if store else {}
    active, due = await store.jobs.active_and_next() if store else (0, None)
    return {
        "version": version("voltaire"),
        "uptime_s": report.uptime_s if report else None,
        "backend": server,
        "speed": (report.speed if report else Speed()).model_dump(include=SPEEDS),
        "gpus": [gpu.model_dump(mode="json") for gpu in report.gpus] if report else [],
        "bot": {
            "username": bot.username if bot else None,
            "polling_ok": bot.polling_ok if bot else None,
            "last_update_at": bot.last_update_at.isoformat()
            if bot and bot.last_update_at
            else None,
            "problem": bot.problem if bot else None,
            "inbox_waiting": await store.inbox.count_waiting() if store else 0,
            "outbox_waiting": counts.get("waiting", 0) + counts.get("sending", 0),
            "outbox_uncertain": counts.get("uncertain", 0),
            "outbox_failed": counts.get("failed", 0),
            "set_aside": await store.set_aside.count() if store else 0,
        },
        "chats": await store.chats.count() if store else 0,
        "jobs": {"active": active, "next_at": due and datetime.fromtimestamp(due, UTC).isoformat()},
        "memory_mib": {
            "bot": presence.resident_mib(bot.pid) if bot else None,
            "backend": report.memory_mib.backend if report else None,
            "server": report.memory_mib.server if report else None,
        },
    }
