"""A state with many turns, and the control API of a backend with a card, for the owner's page.

await fill_state(folder / "voltaire.db", turns=10_000)
seem_running(folder)
async with backend_with_card(folder / "b.sock"): ...
"""

import asyncio
import json
import math
import os
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web

from agent.approvals import question_id
from agent.store import open_store
from agent.store.terms import add_functions
from backend.control.metrics import metrics_text
from backend.pictures import gpu_drawings
from backend.protocol import (
    Alert,
    Endpoint,
    Gpu,
    GpuMinute,
    MemoryUse,
    ProfileSummary,
    Restored,
    ServerState,
    ServerStatus,
    Speed,
    Status,
    WarmPrefix,
)
from bot.state import Presence, started, write_presence

Told = Callable[[str], str]

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<svg onload=\"document.title='owned'\"></svg> \u202eevil\u202c \x1b[31mred\x1b[0m \x00 javascript:alert(1)"
)
ASKED = (
    ("how much disk space is free?", "bash", "df -h /", "213G free (58% used)."),
    ("what changed in website since Friday?", "bash", "git -C /repos/website log --since=friday --oneline", "Four commits: the footer, two typos and the new price list."),
    ("why is the nightly backup slower than last week?", "bash", "tail -n 200 /workspace/backup.log", "It copies the new photo folder now: 41 GB more than on Monday."),
    ("find the invoice of the plumber", "grep", "plumber", "documents/2026/invoice-0412.pdf, 286.40 €, paid on 3 October."),
    ("turn shopping.txt into a table by shop", "edit_file", "shopping.txt", "Done: three shops, eleven things."),
    ("remember that the car goes to the garage in March", "remember", "The car goes to the garage in March", "Noted."),
    ("and the year before?", "", "", "In 2025 it was 1,204 kWh, 8 % less."),
    ("is the certificate of the shop still good?", "bash", "openssl x509 -enddate -noout -in shop.pem", "Until 14 February: 84 days."),
)  # fmt: skip
THOUGHT = "The person wants a figure, so one command is enough. I take the newest and say where it is from."


async def fill_state(path: Path, turns: int, *, hostile: bool = False, now: float = 0.0) -> None:
    """A state as some months leave it: chats, turns with their steps and figures, jobs, deliveries,
    questions. `hostile`: every text of it is what an attacker would like to be drawn."""
    async with open_store(path) as store:
        until = now or store.clock()

        def told(text: str) -> str:
            return HOSTILE if hostile else text

        await asyncio.to_thread(_fill, path, turns, until, told, hostile)
        for key in ("tg:111", "tg:222"):
            await store.notes.add(key, told("The car goes to the garage in March."), pinned=True)
            await store.notes.add(
                key,
                told("Invoices lie in documents/, by year."),
                stranger=told("a page of example.org") if hostile else "",
            )
        await store.people.put("telegram", "222", told("Ada"), "member", "Tim")
        await store.ledger.record("admin", "tg:111", act="settings", to=told("timezone"), by="Tim")


def seem_running(folder: Path) -> None:
    """What a bot tells of itself while it runs, told by this process."""
    here = os.getpid()
    began = started(here)
    assert began
    write_presence(
        folder, Presence(pid=here, started=began, username="my_voltaire_bot", polling_ok=True)
    )


def _fill(path: Path, turns: int, now: float, told: Told, hostile: bool) -> None:
    dice = random.Random(7)
    with closing(sqlite3.connect(path)) as db, db:
        add_functions(db)
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA foreign_keys = OFF")
        chats = [("tg:111", "Tim"), ("tg:222", "Ada"), ("cli", "terminal")]
        for number, (key, title) in enumerate(chats, 1):
            db.execute(
                "INSERT INTO chats (key, number, title, conversation, created_at, active_at) VALUES (?,?,?,?,?,?)",
                (key, number, told(title), number, now - 9e6, now - 60 * number),
            )
            db.execute(
                "INSERT INTO conversations (id, chat, title, summary, compacted, created_at, active_at)"
                " VALUES (?, ?, ?, ?, 1, ?, ?)",
                (
                    number,
                    key,
                    told("how much disk space is free?"),
                    told("They spoke of the backup."),
                    now - 9e6,
                    now,
                ),
            )
        for n in range(turns):
            _turn(
                db,
                dice,
                n,
                now - 240 - (turns - 1 - n) * (1500 if turns < 5000 else 700) - dice.random() * 300,
                told,
            )
        _beside(db, now, told, hostile)


def _turn(db: sqlite3.Connection, dice: random.Random, n: int, at: float, told: Told) -> None:
    id, conversation = f"t{n:05}", dice.choice((1, 1, 1, 2, 3))
    chat = {1: "tg:111", 2: "tg:222", 3: "cli"}[conversation]
    asked, tool, argument, answer = ASKED[(n * 5 + n // 8) % len(ASKED)]
    slow = dice.random() < 0.06
    ttft, tool_s = (
        dice.uniform(180, 900) * (9 if slow else 1),
        dice.uniform(0.02, 1.4) if tool else 0.0,
    )
    decode = 46 + 6 * math.sin(n / 9) + dice.uniform(-3, 3)
    written = (dice.randint(20, 70), dice.randint(40, 260)) if tool else (dice.randint(40, 260),)
    ends = (
        at + 0.05 + sum(ttft / 1000 / (k + 1) + w / decode for k, w in enumerate(written)) + tool_s
    )
    reason = "done" if dice.random() < 0.97 else dice.choice(("cancelled", "error", "tool_limit"))
    db.execute(
        "INSERT INTO turns (id, chat, conversation, kind, source, state, reason, text, started_at, ended_at)"
        " VALUES (?, ?, ?, 'message', 'telegram', 'done', ?, ?, ?, ?)",
        (id, chat, conversation, reason, told(answer), at, ends),
    )
    db.execute(
        "INSERT INTO inbox (source, update_id, chat, kind, words, sender, state, turn, said_at, received_at)"
        " VALUES ('telegram', ?, ?, 'message', ?, ?, 'done', ?, ?, ?)",
        (id, chat, told(asked), told("Tim"), id, at - 0.3, at - dice.uniform(0.01, 0.4)),
    )
    call = [
        [
            f"c{n}",
            told(tool) if told(tool) != tool else tool,
            told(json.dumps({"command": argument})),
        ]
    ]
    rows: list[tuple[str, str, str, str | None]] = [
        (
            "user",
            "<context>\nnow: Sun 2026-11-22 09:12 UTC\nnotes:\n- "
            + told("The car goes to the garage.")
            + "\n</context>\n",
            told(asked),
            None,
        )
    ]
    if tool:
        rows += [
            ("assistant", "", "", json.dumps({"calls": call, "thought": told(THOUGHT)})),
            ("tool", "", told(f"{argument}\nFilesystem      Size  Used Avail Use%\n/dev/nvme0n1p2  468G  255G  213G  55%"), json.dumps({"call": f"c{n}", "name": call[0][1]})),
        ]  # fmt: skip
        db.execute(
            "INSERT INTO tool_runs VALUES (?, ?, ?, ?)", (id, f"c{n}", at + 1, at + 1 + tool_s)
        )
    rows.append(("assistant", "", told(answer), json.dumps({"thought": told(THOUGHT)})))
    for k, (role, head, text, extra) in enumerate(rows):
        db.execute(
            "INSERT INTO transcript (conversation, position, turn, role, head, text, extra, live, at, origin)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'person')",
            (
                conversation,
                n * 10 + k + 1,
                id,
                role,
                head,
                text,
                extra,
                int(n % 10_000 > 9_960 or n < 30),
                at + k,
            ),
        )
    prompt = 2200 + (n % 90) * 130
    for k, w in enumerate(written):
        reread = dice.randint(200, 1500) if slow and k == 0 else 0
        db.execute(
            "INSERT INTO usage (chat, conversation, turn, prompt_tokens, cached_tokens, new_tokens, completion_tokens,"
            " reread, difference, ttft_ms, prefill_tok_s, decode_tok_s, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (chat, conversation, id, prompt + 90 * k, prompt - 60 - reread, 60, w, reread, told("message 4, character 212") if reread else "",
             round(ttft / (k + 1)), 820 + dice.uniform(-60, 60), decode, at + k + 0.5),
        )  # fmt: skip
    db.execute(
        "INSERT INTO outbox (chat, turn, payload, state, message_ids, attempts, created_at, changed_at)"
        " VALUES (?, ?, ?, 'delivered', ?, 1, ?, ?)",
        (
            chat,
            id,
            json.dumps({"text": told(answer)}),
            json.dumps([str(4000 + n)]),
            ends,
            ends + dice.uniform(0.1, 0.3),
        ),
    )


def _beside(db: sqlite3.Connection, now: float, told: Told, hostile: bool) -> None:
    """What is open: a turn that runs and asks, a message that waits, jobs, a text in doubt."""
    asked = "clean up the old builds in website"
    db.execute(
        "INSERT INTO turns (id, chat, conversation, kind, source, started_at) VALUES ('open', 'tg:111', 1, 'message', 'telegram', ?)",
        (now - 21,),
    )
    db.execute(
        "INSERT INTO inbox (source, update_id, chat, kind, words, sender, state, turn, said_at, received_at)"
        " VALUES ('telegram', 'open', 'tg:111', 'message', ?, 'Tim', 'taken', 'open', ?, ?)",
        (told(asked), now - 22, now - 22),
    )
    db.execute(
        "INSERT INTO transcript (conversation, position, turn, role, text, at, origin) VALUES (1, 1000000, 'open', 'user', ?, ?, 'person')",
        (told(asked), now - 21),
    )
    what, because = (
        told(
            "git commit in /repos/website: remove builds of 2025\n 3 files changed, 1204 deletions(-)"
        ),
        told("a page") if hostile else "",
    )
    db.execute(
        "INSERT INTO approvals (id, chat, turn, call, what, scope, asked_at, expires_at, because) VALUES (?, 'tg:111', 'open', 'c', ?, 'commit:website', ?, ?, ?)",
        (
            question_id("a1", "tg:111", what, "commit:website", because),
            what,
            now - 9,
            now + 291,
            because,
        ),
    )
    db.execute(
        "INSERT INTO inbox (source, update_id, chat, kind, words, sender, state, said_at, received_at)"
        " VALUES ('telegram', 'next', 'tg:222', 'message', ?, 'Ada', 'waiting', ?, ?)",
        (told("and what does the weather do on Sunday?"), now - 6, now - 6),
    )
    jobs = [
        ("summary", "every weekday at 8", "website", {"kind": "calendar", "times": [480], "weekdays": [0, 1, 2, 3, 4], "zone": "UTC"}),
        ("remind", "every day at 18:30", "water the tomatoes", {"kind": "calendar", "times": [1110], "zone": "UTC"}),
        ("digest", "every Monday at 7", "the health digest", {"kind": "calendar", "times": [420], "weekdays": [0], "zone": "UTC"}),
    ]  # fmt: skip
    for n, (kind, words, task, timing) in enumerate(jobs, 1):
        db.execute(
            "INSERT INTO jobs (id, chat, kind, words, timing, timezone, task, made_by, next_at, created_at, changed_at)"
            " VALUES (?, 'tg:111', ?, ?, ?, 'UTC', ?, ?, ?, ?, ?)",
            (
                n,
                kind,
                told(words),
                json.dumps(timing),
                told(task),
                "model" if n == 2 else "person",
                int(now + 3600 * 7 * n),
                now,
                now,
            ),
        )
        for k in range(6):
            state = "missed" if (n, k) == (1, 4) else "done"
            db.execute(
                "INSERT INTO occurrences (job, due_at, state, detail, ended_at) VALUES (?, ?, ?, ?, ?)",
                (
                    n,
                    int(now - 86400 * (k + 1)),
                    state,
                    told("the host was off or busy") if state == "missed" else "",
                    now - 86400 * (k + 1),
                ),
            )
    db.execute(
        "INSERT INTO outbox (chat, turn, payload, state, attempts, error, created_at, changed_at)"
        " VALUES ('tg:222', NULL, ?, 'uncertain', 1, ?, ?, ?)",
        (
            json.dumps({"text": told("Tomorrow: 4 °C, rain from noon on.")}),
            told("no answer within 20 s"),
            now - 5000,
            now - 5000,
        ),
    )


class CardBackend:
    """The control API of a backend whose one card has worked for a day; the figures are made up. It is the model
    server, too, as far as rendering prompts."""

    def __init__(self, *, hostile: bool = False) -> None:
        self.text = HOSTILE if hostile else ""
        self.port = 0
        self.pid = 0
        self.sampling = {"temperature": 0.2}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/status", self.get_status),
            web.get("/metrics", self.get_metrics),
            web.get("/v1/gpu/drawings", self.get_drawings),
            web.get("/v1/events", self.get_events),
            web.get("/v1/profiles", self.get_profiles),
            web.get("/v1/logs", self.get_logs),
            web.get("/v1/endpoint", self.get_endpoint),
            web.post("/v1/ready", self.post_ready),
            web.post("/v1/warm", self.accept),
            web.post("/apply-template", self.render),
        ]

    async def get_status(self, request: web.Request) -> web.Response:
        return web.Response(text=self.status().model_dump_json(), content_type="application/json")

    async def get_metrics(self, request: web.Request) -> web.Response:
        return web.Response(text=metrics_text(self.status()))

    def status(self) -> Status:
        return Status(
            version="0.1.0",
            uptime_s=91_000,
            pid=self.pid,
            backend=ServerStatus(
                state="busy",
                profile=self.text or "qwen3.6-35b-a3b",
                model=self.text or "Qwen3.6 35B-A3B, Q4_K_M",
                reason=self.text or None,
                n_ctx=32768,
                pid=4711,
                warm=WarmPrefix(tokens=1288, cached_tokens=1288, seconds=1.4, source="prefill"),
                restored=Restored(chats=3, tokens=12_400, seconds=14.2),
            ),
            speed=Speed(decode_tok_s=47, prefill_tok_s=830, ttft_ms=420, cache_hit=0.94),
            gpus=[
                Gpu(
                    index=0,
                    name=self.text or "Tesla V100-SXM2-16GB",
                    temperature_c=61,
                    memory_temperature_c=58,
                    power_w=171,
                    power_limit_w=250,
                    utilization=88,
                    memory_used_mib=14820,
                    memory_total_mib=16144,
                    sm_clock_mhz=1312,
                    tokens_per_joule=0.31,
                    throttle=[self.text] if self.text else [],
                )
            ],
            memory_mib=MemoryUse(backend=58, server=1900),
            waiting=1,
        )

    async def get_drawings(self, request: web.Request) -> web.Response:
        minutes, step = int(request.query["minutes"]), int(request.query.get("step", 1))
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        kept = []
        for n in range(min(minutes, 3 * 1440), 0, -step):
            at = now - timedelta(minutes=n)
            work = max(0.0, math.sin(at.timestamp() / 5200) + 0.6 * math.sin(at.timestamp() / 700))
            kept.append(
                GpuMinute(
                    at=at, gpu=0, temperature_c=41 + 24 * min(1, work), power_w=38 + 170 * work / 1.6,
                    utilization=min(99, 90 * work), memory_used_mib=14600 + 200 * work, sm_clock_mhz=135 + 1200 * min(1, work * 3),
                    throttled=0.4 if work > 1.5 else 0.0,
                )
            )  # fmt: skip
            if work > 0.2:
                kept.append(GpuMinute(at=at, decode_tok_s=46 + 5 * math.cos(n / 31)))
        zone = request.query["zone"]
        return web.json_response(gpu_drawings(kept, hours=minutes / 60, zone=zone))

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        if int(request.query.get("after", 0)) < 1:
            text = self.text or "The card is at 78 °C again."
            at = datetime.now(UTC) - timedelta(hours=2)
            alert = Alert(id=1, at=at, name="heat", level="over", text=text)
            await answer.write(alert.model_dump_json().encode() + b"\n")
        await asyncio.Event().wait()
        return answer

    async def get_profiles(self, request: web.Request) -> web.Response:
        listed = [
            ProfileSummary(name="qwen3.6-35b-a3b", title=self.text or "Qwen3.6 35B-A3B", good="tools", here=True, decode_tok_s=46, source="measured"),
            ProfileSummary(name="gpt-oss-20b", title="gpt-oss 20B", good="thinking", here=True),
            ProfileSummary(name="devstral-small-2", title="Devstral Small 2", good="code", here=False),
        ]  # fmt: skip
        return web.Response(text="\n".join(each.model_dump_json() for each in listed))

    async def get_endpoint(self, request: web.Request) -> web.Response:
        endpoint = Endpoint(
            url=f"http://127.0.0.1:{self.port}", n_ctx=32768, sampling=self.sampling
        )
        return web.Response(text=endpoint.model_dump_json(), content_type="application/json")

    async def post_ready(self, request: web.Request) -> web.Response:
        return web.Response(text=ServerState(state="ready").model_dump_json() + "\n")

    async def accept(self, request: web.Request) -> web.Response:
        """What a bot that starts tells its backend."""
        return web.Response(text="{}")

    async def render(self, request: web.Request) -> web.Response:
        """A template such as ChatML."""
        body = await request.json()
        parts = [json.dumps(body.get("tools", []))]
        for message in body["messages"]:
            said = message.get("content") or ""
            calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
            parts.append(f"<|im_start|>{message['role']}\n{said}{calls}<|im_end|>")
        return web.json_response({"prompt": "\n".join(parts)})

    async def get_logs(self, request: web.Request) -> web.Response:
        lines = [self.text] * 3 + ["x" * 1_000_000] if self.text else []
        lines += [f"slot update_slots: id 0 | task {n} | prompt done" for n in range(40)]
        return web.Response(text="\n".join(lines))


@asynccontextmanager
async def backend_with_card(socket: Path, *, hostile: bool = False) -> AsyncIterator[CardBackend]:
    backend = CardBackend(hostile=hostile)
    app = web.Application()
    app.add_routes(backend.routes())
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(socket)).start()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        backend.port = runner.addresses[-1][1]
        yield backend
    finally:
        await runner.cleanup()
