"""What the page reads, as JSON: the state through a read-only connection, the model server by the control socket."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args

from aiohttp import web

from agent.errors import BackendAway
from agent.events import Reason
from agent.language import languages, name_of
from agent.memory.notes import ChatMemory, as_json
from agent.messages import Assistant, System
from agent.model import ModelRefused, Request
from agent.prompt import system_text
from agent.sandbox.files import TAINTS, WorkspaceTaints
from agent.sandbox.history import WorkspaceHistory
from agent.sandbox.host_report import memory_bytes
from agent.sandbox.sandbox import folder_name
from agent.schedule.due_times import next_times
from agent.schedule.times.rule import load
from agent.store import Store
from agent.store.jobs import OVERDUE_SECONDS
from agent.store.overview import PARTS, Overview, TurnFilter
from agent.timezones import known_zone
from agent.tools.registry import chosen, offered
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.protocol import Status
from bot.approval_question import excerpt, may_last, with_tabs
from bot.channel import OutgoingMessage
from bot.commands.changes import TURNS, differences, mark
from bot.commands.settings import setting_values
from bot.settings import Settings
from bot.state import bot_facts, read_presence, state_facts, with_presence

JsonFields = dict[str, Any]
StatusJson = Callable[[JsonFields, Status | None], JsonFields]
HISTORY_MINUTES = {"hour": 60, "day": 24 * 60, "month": 31 * 24 * 60}
POINTS = 240  # of a graph
MOST_TURNS = 100
NEXT_TIMES = 5
LOG_LINES = 400
RENDER_SECONDS = 20.0
MOST_WRITTEN = 1024  # tokens; no template shows it
KNOWN_SECONDS = 10.0  # for which a view of the state is reused, unless the state has changed
TOKEN_CHARACTERS = 4.0  # where nothing was measured
CUT = "[... {more:,} characters in {lines:,} lines are left out here ...]"


def as_asked(question: JsonFields) -> JsonFields:
    """Return the approval as JSON: `shown`, `whole` if that is longer, and whether it may always be allowed."""
    what, scope, because = (str(question[key]) for key in ("what", "scope", "because"))
    shown, whole = excerpt(what, CUT), with_tabs(what)
    return {
        **question,
        "shown": shown,
        "whole": "" if whole == shown else whole,
        "may_last": may_last(scope, because),
    }


class Views:
    """What the owner's page shows, as JSON. `status_json` makes the JSON of `voltaire status` from the bot's facts and the backend's status."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        backend: BackendClient,
        status_json: StatusJson,
    ) -> None:
        self.settings = settings
        self.store = store
        self.backend = backend
        self.overview = Overview(store.database)
        repositories = bool(settings.agent.repos)
        self.tools = offered(chosen(settings.agent.tools), with_repositories=repositories)
        self._status_json = status_json
        self._known: tuple[int, float, JsonFields] | None = None

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/session", self.get_session),
            web.get("/api/now", self.get_now),
            web.get("/api/drawings", self.get_drawings),
            web.get("/api/turns", self.get_turns),
            web.get("/api/turns/{turn}", self.get_turn),
            web.get("/api/turns/{turn}/prompt", self.get_prompt),
            web.get("/api/turns/{turn}/rendered", self.get_rendered),
            web.get("/api/chats", self.get_chats),
            web.get("/api/chat", self.get_chat),
            web.get("/api/changes", self.get_changes),
            web.get("/api/messages", self.get_messages),
            web.get("/api/export", self.get_export),
            web.get("/api/jobs", self.get_jobs),
            web.get("/api/deliveries", self.get_deliveries),
            web.get("/api/people", self.get_people),
            web.get("/api/settings", self.get_settings),
            web.get("/api/logs", self.get_logs),
        ]

    async def get_session(self, request: web.Request) -> web.Response:
        return shown({"parts": PARTS, "reasons": get_args(Reason)})

    # -- now -------------------------------------------------------------------

    async def get_now(self, request: web.Request) -> web.Response:
        return shown(await self.now())

    async def now(self) -> JsonFields:
        """The first view. What comes from the database is read again when that has changed, and after KNOWN_SECONDS
        for what depends on the time (a running turn's seconds)."""
        version, at = await self.overview.version(), time.monotonic()
        if self._known is None or self._known[0] != version or at - self._known[1] > KNOWN_SECONDS:
            self._known = version, at, await self._from_state()
        known = dict(self._known[2])
        report = await self._backend_status()
        presence = read_presence(self.settings.state_dir)
        return {
            **known,
            "status": self._status_json(with_presence(known.pop("facts"), presence), report),
            "gpu_waiting": report.waiting if report else 0,
            "price_kwh": self.settings.backend.price_kwh,
            "processor": None if report and report.gpus else processor_load(),
            "at": time.time(),
        }

    async def _backend_status(self) -> Status | None:
        with suppress(BackendUnavailable, BackendRefused):
            return await self.backend.status()
        return None

    async def _from_state(self) -> JsonFields:
        overview = self.overview
        questions = await overview.questions(0)
        deliveries = await self.store.outbox.counts()
        return {
            "running": [asdict(line) for line in await overview.open_turns()],
            "waiting": await overview.waiting(),
            "questions": [as_asked(each) for each in questions],
            "uncertain": deliveries.get("uncertain", 0),
            "turns": [asdict(line) for line in await overview.turns(TurnFilter(), 8)],
            "speeds": await overview.speeds(),
            "frozen": await self.store.freeze.since(),
            "facts": await state_facts(self.store),
        }

    async def get_drawings(self, request: web.Request) -> web.Response:
        """The GPUs and the speed over time, each an SVG as in /gpu's picture, with at most POINTS points a line."""
        minutes = HISTORY_MINUTES.get(request.query.get("span", "hour"), 60)
        zone = known_zone(request.query.get("zone", "")) or "UTC"
        try:
            drawn = await self.backend.gpu_drawings(minutes, max(1, minutes // POINTS), zone=zone)
        except (BackendUnavailable, BackendRefused) as error:
            return shown({"drawings": [], "why": str(error)})
        return shown({"drawings": drawn, "why": ""})

    # -- turns -----------------------------------------------------------------

    async def get_turns(self, request: web.Request) -> web.Response:
        query = request.query
        wanted = TurnFilter(
            words=query.get("words", ""),
            chat=query.get("chat", ""),
            tool=query.get("tool", ""),
            reason=query.get("reason", ""),
            slow=number(query.get("slow")),
            reread=bool(query.get("reread")),
            before=number(query.get("before")),
        )
        limit = int(min(MOST_TURNS, number(query.get("limit")) or 50))
        lines = await self.overview.turns(wanted, limit)
        turns = [asdict(line) for line in lines]
        answer: JsonFields = {"turns": turns, "more": len(lines) == limit}
        if query.get("choices"):
            chats = await self.overview.chats()
            answer["chats"] = [{"chat": c["chat"], "title": c["title"]} for c in chats]
            answer["tools"] = await self.overview.tool_names()
        return shown(answer)

    async def get_turn(self, request: web.Request) -> web.Response:
        id = request.match_info["turn"]
        line = await self.overview.turn(id)
        if line is None:
            raise web.HTTPNotFound(text="There is no such turn (any more).")
        records = await self.overview.records_of(id)
        for sent in records["sent"]:
            sent["text"], _ = text_of(sent.pop("payload"))
        steps = await self.overview.turn_steps(id)
        return shown({"turn": asdict(line), "steps": steps, **records})

    async def get_prompt(self, request: web.Request) -> web.Response:
        """The prompt of the turn's first call: message by message, and its tokens by part."""
        id = request.match_info["turn"]
        if await self.overview.turn(id) is None:
            raise web.HTTPNotFound(text="There is no such turn (any more).")
        before, summary, compacted = await self.overview.prompt_of(id)
        steps, records = await self.overview.turn_steps(id), await self.overview.records_of(id)
        tools = json.dumps(self.tools)
        prefix = len(system_text()) + len(tools)
        first = next((call for call in records["calls"] if call["purpose"] == "turn"), None)
        tokens = first["prompt_tokens"] if first else None
        asked = next((n for n, step in enumerate(steps) if step["role"] == "assistant"), len(steps))
        return shown(
            {
                "system": system_text(),
                "tools": tools,
                "messages": [*before, *steps[:asked]],
                "compacted": compacted,
                "parts": prompt_parts(prefix, summary, before, steps[:asked], tokens),
                "measured": bool(tokens),
            }
        )

    async def get_rendered(self, request: web.Request) -> web.Response:
        """The same prompt as one text, rendered by the template of the model that serves now; or `why` there is
        none."""
        from agent.llm.openai.client import OpenAIModel  # asked for rarely

        recorded = await self.store.turns.record(request.match_info["turn"])
        if recorded is None:
            raise web.HTTPNotFound(text="There is no such turn (any more).")
        chat = await self.store.chats.get(recorded.chat)
        own = recorded.own
        asked = next(
            (n for n, message in enumerate(own) if isinstance(message, Assistant)), len(own)
        )
        wanted = Request(
            messages=(System(system_text()), *recorded.before, *own[:asked]),
            tools=self.tools,
            max_tokens=MOST_WRITTEN,
            thinking=chat.thinking if chat else None,
        )
        text, why = None, "This model server does not show prompts."
        try:
            async with asyncio.timeout(RENDER_SECONDS), OpenAIModel(self.backend.endpoint) as model:
                text = await model.rendered(wanted)
        except (ModelRefused, BackendAway, BackendRefused) as error:
            why = str(error)
        except TimeoutError:
            why = f"The model server did not answer within {RENDER_SECONDS:.0f} s."
        return shown({"text": text or "", "why": "" if text else why})

    # -- chats -----------------------------------------------------------------

    async def get_chats(self, request: web.Request) -> web.Response:
        return shown({"chats": await self.overview.chats()})

    async def get_chat(self, request: web.Request) -> web.Response:
        chat = request.query.get("chat", "")
        words = request.query.get("words", "")
        return shown(
            {
                "notes": await self.overview.notes(chat),
                "conversations": await self.overview.conversations(chat),
                "found": await self.overview.found(chat, words) if words else None,
            }
        )

    async def get_changes(self, request: web.Request) -> web.Response:
        """What the chat's last turns changed in its workspace, newest first."""
        folder = folder_name(request.query.get("chat", ""))
        workspace = self.settings.state_dir / "chats" / folder / "work"
        history = WorkspaceHistory(workspace, 0, WorkspaceTaints(workspace.with_name(TAINTS)))

        def read() -> list[JsonFields]:
            return [
                {
                    **record._asdict(),
                    "changes": [f"{mark(each)} {path}" for path, each in record.changes.items()],
                    "lines": differences(history, record),
                }
                for record in history.records()[:TURNS]
            ]

        return shown({"changes": await asyncio.to_thread(read)})

    async def get_messages(self, request: web.Request) -> web.Response:
        conversation = int(number(request.query.get("conversation")))
        before = int(number(request.query.get("before")))
        messages = await self.overview.messages(conversation, before)
        summary = await self.store.transcript.summary(conversation)
        return shown({"messages": messages, "summary": summary})

    async def get_export(self, request: web.Request) -> web.Response:
        """The JSON of /export, as a file."""
        memory = ChatMemory(self.store, request.query.get("chat", ""), self.settings.agent.timezone)
        return web.Response(
            text=as_json(await memory.export()),
            content_type="application/json",
            headers={"Content-Disposition": 'attachment; filename="voltaire-chat.json"'},
        )

    # -- jobs, deliveries, people ----------------------------------------------

    async def get_jobs(self, request: web.Request) -> web.Response:
        jobs = await self.overview.jobs()
        late = self.store.clock() - OVERDUE_SECONDS
        for job in jobs:
            job["overdue"] = job["state"] == "active" and (job["next_at"] or late) < late
            job["times"] = list_next_times(job.pop("timing")) if job["state"] == "active" else []
        return shown({"jobs": jobs, "occurrences": await self.overview.occurrences()})

    async def get_deliveries(self, request: web.Request) -> web.Response:
        rows = await self.overview.deliveries()
        for row in rows:
            row["text"], row["buttons"] = text_of(row.pop("payload"))
        return shown({"deliveries": rows})

    async def get_people(self, request: web.Request) -> web.Response:
        return shown(
            {
                "people": await self.overview.people(),
                "configured": self._configured_people(),
                "questions": [as_asked(each) for each in await self.overview.questions()],
                "grants": await self.overview.grants(),
            }
        )

    def _configured_people(self) -> list[JsonFields]:
        telegram, matrix = self.settings.telegram, self.settings.matrix
        listed: list[tuple[str, str, Sequence[int | str]]] = [
            ("telegram", "owner", telegram.owners),
            ("telegram", "member", telegram.allow),
            ("matrix", "owner", matrix.owners),
            ("matrix", "member", matrix.allow),
        ]
        return [
            {"source": app, "person": str(id), "role": role}
            for app, role, ids in listed
            for id in ids
        ]

    # -- settings and logs -----------------------------------------------------

    async def get_settings(self, request: web.Request) -> web.Response:
        profiles: list[JsonFields] = []
        with suppress(BackendUnavailable, BackendRefused):
            profiles = [profile.model_dump() for profile in await self.backend.profiles()]
        presence = read_presence(self.settings.state_dir)
        return shown(
            {
                "chats": await self.overview.chats(),
                "profiles": profiles,
                "status": self._status_json(
                    await bot_facts(presence, self.store), await self._backend_status()
                ),
                "choices": {
                    name: [[word, value] for word, value in values.items()]
                    for name, values in setting_values().items()
                },
                "languages": {code: name_of(code) for code in languages()},
                "timezone": self.settings.agent.timezone,
                "frozen": await self.store.freeze.since(),
                "file": str(self.settings.path or ""),
            }
        )

    async def get_logs(self, request: web.Request) -> web.Response:
        lines, why = list[str](), ""
        try:
            lines = await self.backend.logs(LOG_LINES)
        except (BackendUnavailable, BackendRefused) as error:
            why = str(error)
        return shown({"server": lines, "why": why, "ledger": await self.overview.ledger()})


def shown(fields: Mapping[str, Any]) -> web.Response:
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return web.Response(body=text.encode("utf-8", "replace"), content_type="application/json")


def number(given: str | None) -> float:
    """A number in a query; 0 where it is missing. Raises HTTPBadRequest."""
    try:
        found = float(given or 0)
    except ValueError:
        raise web.HTTPBadRequest(text=f"{given!r} is no number.") from None
    if not abs(found) < 1 << 62:
        raise web.HTTPBadRequest(text="That number is too large.")
    return found


def text_of(payload: str) -> tuple[str, int]:
    """The text and the number of buttons of an outbox payload; the payload itself where it cannot be read."""
    try:
        message = OutgoingMessage.from_json(payload)
    except ValueError:
        return payload, 0
    return message.text, sum(map(len, message.keyboard))


def list_next_times(timing: str) -> list[float]:
    """The next times of a job; empty if its rule cannot be parsed."""
    with suppress(ValueError, LookupError, TypeError):
        rule = load(json.loads(timing))
        return [at.timestamp() for at in next_times(rule, datetime.now(UTC), NEXT_TIMES)]
    return []


def prompt_parts(
    prefix: int, summary: str, before: list[JsonFields], new: list[JsonFields], measured: int | None
) -> JsonFields:
    """The prompt's tokens by part, in proportion to characters; they add up to `measured` where that is known."""
    notes = 0
    for step in [*before, *new]:
        notes += sum(len(line) for line in step["head"].splitlines() if line.startswith("- "))
    characters = {
        "prefix": prefix,
        "summary": len(summary),
        "notes": notes,
        "history": max(0, sum(map(step_size, before)) - len(summary)),
        "new": sum(map(step_size, new)),
    }
    whole = sum(characters.values()) or 1
    tokens = measured or round(whole / TOKEN_CHARACTERS)
    return {name: round(tokens * count / whole) for name, count in characters.items()}


def step_size(step: JsonFields) -> int:
    if step["short"] is not None:
        return len(step["short"])
    calls = sum(len(call["name"]) + len(call["arguments"]) for call in step["calls"])
    return len(step["head"]) + len(step["text"]) + len(step["thought"]) + calls


# -- the processor ------------------------------------------------------------


ZONES = Path("/sys/class/thermal")
MODEL = Path("/proc/cpuinfo")  # platform.processor() is empty on Debian
MIB = 2**20


def processor_load() -> dict[str, Any]:
    total, free = memory_bytes()
    return {
        "name": model_name(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "memory_used_mib": (total - free) / MIB,
        "memory_total_mib": total / MIB,
        "temperature_c": hottest(),
    }


@cache
def model_name() -> str | None:
    with suppress(OSError):
        for line in MODEL.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return None


def hottest() -> float | None:
    """The hottest of the machine's thermal zones."""
    found = []
    for zone in ZONES.glob("thermal_zone*/temp"):
        with suppress(OSError, ValueError):
            found.append(int(zone.read_text("utf-8")) / 1000)
    return max(found, default=None)
