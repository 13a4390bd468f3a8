"""The changes that commands and the owner's page request from the process that holds the state.

Modules that only one of them needs are imported there: most commands make a single change.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent.errors import AgentError
from agent.store import Store
from agent.store.jobs import Job, JobSpec
from agent.timezones import local_time
from bot import totp
from bot.channel import OutgoingMessage
from bot.holder import Holder, planner_of
from bot.state import make_private

if TYPE_CHECKING:
    from agent.schedule.planner import Planner
    from bot.channel import Keyboard
    from bot.commands.changes import ChatChanges
    from bot.commands.trust import ChatTrust

JsonFields = dict[str, Any]
Act = Callable[[Holder, JsonFields], Awaitable[Any]]
BY = "terminal"
MOST_DATA = 64 << 10  # bytes of data for a job that is triggered
TERMINAL_CHAT = "cli"  # of commands without --chat; it needs no row
IMPORTED = "imported"  # the keys of what was taken over from other agents


async def owners(holder: Holder, _: JsonFields) -> list[int]:
    """The Telegram ids of those who became owners by a pairing link."""
    return [int(owner.person) for owner in await holder.store.people.all("telegram", "owner")]


async def pairing_code(holder: Holder, fields: JsonFields) -> str:
    return await holder.store.people.make_code("owner", fields["seconds"])


async def post(holder: Holder, fields: JsonFields) -> int:
    """Put a message into a chat's outbox; return its id."""
    payload = OutgoingMessage(fields["text"]).to_json()
    [id] = await holder.store.outbox.add(fields["chat"], [payload])
    return id


async def send(holder: Holder, fields: JsonFields) -> str:
    """Put a script's message into a chat's outbox, once for each `key`; return the chat."""
    chat = await known_chat(holder, fields["chat"])
    payload = OutgoingMessage(fields["text"], file=fields["file"]).to_json()
    await holder.store.outbox.add_once(fields["key"], [chat], payload, silent=fields["silent"])
    return chat


async def known_chat(holder: Holder, chat: str | None) -> str:
    """The chat, or the first owner's where none is named. Raises AgentError where nobody has it."""
    chat = chat or await first_owner_chat(holder)
    if chat != TERMINAL_CHAT and await holder.store.chats.get(chat) is None:
        raise AgentError(f"Nobody has a chat named {chat}, so nobody would read it.")
    return chat


async def first_owner_chat(holder: Holder) -> str:
    """The chat in which the first owner gets alerts; the terminal's if no owner has a chat."""
    settings, store = holder.settings, holder.store
    paired = [owner.person for owner in await store.people.all("telegram", "owner")]
    telegram = [f"tg:{owner}" for owner in (*settings.telegram.owners, *paired)]
    owners = [*telegram, *(f"mx:{owner}" for owner in settings.matrix.owners)]
    known = [chat for chat in dict.fromkeys(owners) if await store.chats.get(chat)]
    return next(iter(await store.links.alerted(known)), TERMINAL_CHAT)


async def posted(holder: Holder, fields: JsonFields) -> JsonFields | None:
    row = await holder.store.outbox.get(fields["id"])
    return {"state": row.state, "error": row.error} if row else None


async def page(holder: Holder, fields: JsonFields) -> str:
    """Make a change requested on the owner's page."""
    from bot.page.changes import Changes, Pressed

    return await Changes(holder).make(fields["change"], Pressed(**fields["pressed"]))


async def record(holder: Holder, fields: JsonFields) -> None:
    """Record in the ledger what somebody did in the terminal."""
    await holder.store.ledger.record("admin", by=BY, **fields)


async def fact(holder: Holder, fields: JsonFields) -> Any:
    return await holder.store.key_values.get(fields["key"], object)


async def put_fact(holder: Holder, fields: JsonFields) -> None:
    """Store a value; where `old` is given only if the stored value is still that one."""
    if "old" in fields:
        await holder.store.key_values.replace(fields["key"], fields["old"], fields["value"])
    else:
        await holder.store.key_values.put(fields["key"], fields["value"])


async def forget_fact(holder: Holder, fields: JsonFields) -> None:
    await holder.store.key_values.remove(fields["key"])


async def mcp_test(holder: Holder, fields: JsonFields) -> JsonFields:
    """Start an MCP server of the configuration file as it is now; return its tools, None while an owner must allow them.

    A descriptor that is new or changed is pinned if `allowed` is True, or is the question that was returned as `asked`.
    """
    from agent.mcp.config import SignInFirst
    from agent.mcp.listed import listed_tools
    from agent.mcp.servers import open_servers
    from agent.mcp.tools import question
    from agent.sandbox.output_buffer import visible
    from agent.tools.registry import chosen
    from bot.agent_config import agent_config
    from bot.settings import load

    assert holder.agent
    name, settings = fields["name"], load(holder.settings.path)
    configs, state = agent_config(settings).mcp, holder.settings.state_dir
    async with open_servers(configs, holder.agent.sandboxes, state, holder.store) as servers:
        if name not in servers.configs:
            raise AgentError(f"There is no server named {visible(name)}: voltaire mcp list")
        config = servers.named(name)
        try:
            if not fields["signed_in"] and await servers.lacking(name):
                return {"sign_in": True}
            async with servers.session(name, "mcp-test") as running:
                seen = running.tools
        except SignInFirst:
            if fields["signed_in"]:
                raise
            return {"sign_in": True}
        pins = await servers.pins(name)
        new = [tool for tool in seen if not pins.seen(tool)]
        asked = visible(question(config.source, pins, new)) if new else ""
        found = {"sign_in": False, "asked": asked, "new": len(new), "tools": None, "problem": ""}
        if not asked or fields["allowed"] in (True, asked):
            await servers.pin(name, [t for t in seen if t in new or t.name in config.tools])
            found["tools"] = [tool.line for tool in seen]
            if config.tools:
                listed = await listed_tools(servers, chosen(settings.agent.tools))
                found["problem"] = listed.problem
        return found


async def freeze(holder: Holder, _: JsonFields) -> tuple[int, int]:
    return await holder.store.freeze.freeze(BY)


async def thaw(holder: Holder, _: JsonFields) -> bool:
    return await holder.store.freeze.thaw(BY)


async def thaw_code(holder: Holder, _: JsonFields) -> tuple[str, str]:
    """Create the secret of the codes for /thaw; return it and its otpauth URI."""
    make_private(holder.settings.state_dir)
    secret = totp.make_secret(holder.settings.state_dir)
    await holder.store.ledger.record("admin", act="thaw code", by=BY)
    return secret, totp.address(secret)


async def jobs(holder: Holder, fields: JsonFields) -> list[JsonFields]:
    """The jobs of a chat, each with its next times and how its last runs ended."""
    planner = await planner_of(holder, fields["chat"])
    return [await job_fields(holder.store, planner, job) for job in await planner.jobs()]


async def chats_with_jobs(holder: Holder, _fields: JsonFields) -> list[str]:
    return sorted({job.spec.chat for job in await holder.store.jobs.active()})


async def job_fields(store: Store, planner: "Planner", job: Job) -> JsonFields:
    runs, [newest, *_] = await store.occurrences.of_job(job.id, 5), await planner.history(job, 1)
    return {
        "id": job.id,
        "kind": job.spec.kind,
        "task": job.spec.task,
        "when": job.spec.when,
        "state": job.spec.state,
        "told": planner.describe(job),
        "next_at": iso(job.spec.next_at),
        "overdue": planner.overdue(job),
        "last": newest.removeprefix("- ") if runs else "",
        "runs": [{"due_at": iso(r.due_at), "state": r.state, "detail": r.detail} for r in runs],
    }


def iso(at: int | None) -> str | None:
    return None if at is None else local_time(at, "UTC").isoformat()


async def job_propose(holder: Holder, fields: JsonFields) -> JsonFields:
    """Parse a job in words; return the job, for `job_add`, and its description."""
    planner = await planner_of(holder, await known_chat(holder, fields["chat"]))
    words = fields["words"]
    if watch := fields["watch"]:
        proposal = await planner.propose(words, f"watch {watch}", made_by="person")
    else:
        proposal = await planner.propose_text(words)
    return {"spec": asdict(proposal.spec), "description": proposal.description}


async def job_add(holder: Holder, fields: JsonFields) -> tuple[int, bool]:
    """Add a job; return its number, and whether this process runs jobs."""
    spec = JobSpec(**fields["spec"])
    job = await (await planner_of(holder, spec.chat)).add(spec)
    return job.id, holder.runs_jobs


async def take_over(holder: Holder, fields: JsonFields) -> JsonFields:
    """Add notes and jobs of another agent to a chat, each key once ever; return the chat, its zone, and the keys that were
    added by now. Raises ToolError where the chat is full."""
    from agent.memory.notes import ChatMemory

    store, chat = holder.store, await known_chat(holder, fields["chat"])
    planner = await planner_of(holder, chat)
    keys, memory = (
        await store.key_values.get(IMPORTED, list[str]) or [],
        ChatMemory(store, chat, ""),
    )
    before = len(keys)
    try:
        for key in fields["jobs"]:
            planner.check_room(await planner.jobs(), "person")
            await planner.add(JobSpec(**fields["jobs"][key]))
            keys.append(key)
        for key in fields["notes"]:
            await memory.remember(fields["notes"][key], "")
            keys.append(key)
    finally:
        if count := len(keys) - before:
            await store.key_values.put(IMPORTED, keys)
            await store.ledger.record("admin", chat, act="import", taken=count, by=BY)
    return {"chat": chat, "zone": planner.zone, "taken": keys}


async def job_edit(holder: Holder, fields: JsonFields) -> list[str]:
    planner, number = await planner_of(holder, fields["chat"]), fields["number"]
    if fields["words"]:
        await planner.edit(number, fields["words"])
    job = await planner.adjust(number, fields["catch_up"], fields["tell"])
    return [planner.describe(job), *await planner.history(job)]


async def job_pause(holder: Holder, fields: JsonFields) -> str:
    planner = await planner_of(holder, fields["chat"])
    return planner.describe(await planner.pause(fields["number"], paused=fields["paused"]))


async def recall(holder: Holder, fields: JsonFields) -> list[JsonFields]:
    """Search the notes and past conversations of a chat."""
    from agent.agent import embedder, zone_of
    from agent.memory.notes import ChatMemory
    from agent.memory.search import SemanticSearch
    from bot.agent_config import agent_config

    store, chat = holder.store, fields["chat"]
    config = agent_config(holder.settings)
    server = embedder(config, store, holder.backend)
    zone = zone_of(await store.chats.get(chat), config)
    memory = ChatMemory(store, chat, zone, SemanticSearch(store, server) if server else None)
    return [asdict(match) for match in await memory.recall(fields["query"], fields["limit"])]


async def context(holder: Holder, fields: JsonFields) -> tuple[dict[str, int], dict[str, int]]:
    """A chat's tokens by part, and those of /commands.txt."""
    agent = holder.agent
    if agent is None:
        raise AgentError("This needs the model.")
    await agent.ready()
    return await agent.context(fields["chat"]), await agent.command_tokens(fields["chat"])


async def new_conversation(holder: Holder, fields: JsonFields) -> None:
    await holder.store.chats.new_conversation(fields["chat"])


async def notes(holder: Holder, fields: JsonFields) -> list[str]:
    return [note.text for note in await holder.store.notes.all(fields["chat"])]


async def trust(holder: Holder, fields: JsonFields) -> "tuple[str, Keyboard]":
    """What strangers wrote in a chat, and a button for each thing that can be vouched for."""
    return await (await trust_of(holder, fields["chat"])).report()


async def vouch(holder: Holder, fields: JsonFields) -> bool:
    return await (await trust_of(holder, fields["chat"])).vouch(fields["what"], BY)


async def trust_of(holder: Holder, chat: str) -> "ChatTrust":
    from bot.commands.trust import ChatTrust

    assert holder.agent  # a terminal's
    files = (await holder.agent.sandboxes.of(chat)).files
    return ChatTrust(chat, holder.store, files, holder.settings.agent.timezone)


async def changes(holder: Holder, fields: JsonFields) -> str:
    """What the last turns of a chat changed."""
    text, _ = await (await changes_of(holder, fields["chat"])).report(fields["argument"])
    return text


async def undo(holder: Holder, fields: JsonFields) -> "tuple[str, Keyboard]":
    """Take back a turn's changes; where something stands against it, the buttons that decide."""
    chat = await changes_of(holder, fields["chat"])
    return await chat.undo(fields["argument"], anyway=fields["anyway"])


async def changes_of(holder: Holder, chat: str) -> "ChatChanges":
    from bot.commands.changes import ChatChanges

    assert holder.agent  # a terminal's
    sandbox = await holder.agent.sandboxes.of(chat)
    return ChatChanges(sandbox, holder.settings.agent.timezone)


ACTS: dict[str, Act] = {
    "changes": changes,
    "undo": undo,
    "owners": owners,
    "pairing-code": pairing_code,
    "post": post,
    "send": send,
    "posted": posted,
    "page": page,
    "record": record,
    "fact": fact,
    "put-fact": put_fact,
    "forget-fact": forget_fact,
    "mcp-test": mcp_test,
    "freeze": freeze,
    "thaw": thaw,
    "thaw-code": thaw_code,
    "jobs": jobs,
    "chats-with-jobs": chats_with_jobs,
    "job-propose": job_propose,
    "job-add": job_add,
    "import": take_over,
    "job-edit": job_edit,
    "job-pause": job_pause,
    "recall": recall,
    "context": context,
    "new": new_conversation,
    "notes": notes,
    "trust": trust,
    "vouch": vouch,
}
