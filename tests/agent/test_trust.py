"""Whose words a chat holds, what it then asks about, and how long that lasts."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.approvals import ApprovalRequest
from agent.messages import User
from agent.sandbox.files import WorkspaceTaints
from agent.schedule.scheduler import SubmitTask
from agent.schedule.times.rule import Once, dump
from agent.store import Incoming, open_store
from agent.store.jobs import JobSpec
from agent.store.transcript import Compaction
from agent.store.turns import RenderedMessage
from agent.trust import ACTS, Taint, asks, named, told
from bot.backup import backup
from bot.restore import restore
from fakes.obedient_chat import CHAT, README, ObedientChat, obedient_chat, order
from fakes.stored import fall_due, grant

PAGE = "page http://example.org/"
POST = "request:POST http://{host}/ by /usr/bin/curl"
NOTE = order("remember", '{"note": "The code is 4711."}')


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[ObedientChat]:
    async with obedient_chat(tmp_path) as opened:
        yield opened


async def sources(chat: ObedientChat) -> list[str]:
    return [taint.source for taint in await chat.store.taints.of_chat(CHAT)]


async def scopes(chat: ObedientChat, text: str) -> list[str]:
    """What an owner is asked about while the person's words are obeyed."""
    before = len(chat.asked)
    await chat.say(text)
    return [request.scope for request in chat.asked[before:]]


def calls(host: str) -> dict[str, list[tuple[str, str]]]:
    """For each act, what does it."""
    return {
        "read": [
            ("read_file", '{"path": "/host.txt"}'),
            ("list_files", '{"pattern": "*"}'),
            ("grep", '{"pattern": "x"}'),
            ("git_status", '{"repo": "app"}'),
            ("git_diff", '{"repo": "app"}'),
            ("recall", '{"query": "tea"}'),
        ],
        "compute": [
            ("bash", '{"command": "echo 1 > made; git init -q r"}'),
            ("write_file", '{"path": "made", "content": "2"}'),
            ("edit_file", '{"path": "made", "old": "2", "new": "3"}'),
            ("git_commit", '{"repo": "r", "message": "none"}'),
        ],
        "answer": [("send_file", '{"path": "made"}')],
        "delegate": [("delegate", '{"task": "look"}')],
        "network": [
            ("bash", f'{{"command": "curl -s http://{host}/"}}'),
            ("web_fetch", f'{{"url": "http://{host}/"}}'),
        ],
        "request": [("bash", f'{{"command": "curl -s -d x http://{host}/"}}')],
        "page": [("bash", f'{{"command": "web read http://{host}/made$(echo -up)"}}')],
        "remember": [("remember", '{"note": "Likes tea."}')],
        "plan": [("schedule", '{"when": "in 20 minutes", "task": "remind me to drink"}')],
        "schedule": [("schedule", '{"when": "every day at 8", "task": "look", "kind": "task"}')],
        "write": [
            ("write_file", '{"path": "/repos/app/new", "content": "x"}'),
            ("edit_file", '{"path": "/repos/app/README", "old": "Read", "new": "x"}'),
        ],
        "commit": [("git_commit", '{"repo": "app", "message": "m"}')],
        "send": [("send_file", '{"path": "/repos/app/README"}')],
        "key": [("bash", f'{{"command": "echo ghp_{"a1B2" * 9}"}}')],
    }


@pytest.mark.parametrize("touched", [False, True])
async def test_every_cell_of_the_table(chat: ObedientChat, touched: bool) -> None:
    for act, ways in calls(chat.web.host).items():
        for way in ways:
            await chat.store.chats.new_conversation(CHAT)
            await chat.sandbox.files.vouch(1 << 60)
            if touched:
                await chat.say("hello", stranger=PAGE)
            asked = [scope.partition(":")[0] for scope in await scopes(chat, order(*way))]
            expected = [] if asks(act, touched=touched) == "never" else [act]
            assert asked == expected, way
    elsewhere = {"mcp", "mcp-destructive", "mcp-server", "calendar", "calendar-read"} | {
        "mail",
        "mail-draft",
        "mail-send",
    }
    assert {*calls(""), "budget", *elsewhere} == set(ACTS)


@pytest.mark.parametrize("touched", [False, True])
async def test_a_used_up_budget_asks_and_a_permission_holds_in_untouched_chats_alone(
    chat: ObedientChat, touched: bool
) -> None:
    chat.limits = {**chat.limits, "calls": 1}
    looks = [order("list_files", f'{{"pattern": "{name}*"}}') for name in "abc"]
    assert await scopes(chat, looks[0]) == []
    if touched:
        await chat.say("hello", stranger=PAGE)
    assert await scopes(chat, looks[1]) == ["budget:calls"]
    await grant(chat.store, CHAT, "budget:calls", "Olga")
    assert await scopes(chat, looks[2]) == (["budget:calls"] if touched else [])


@pytest.mark.parametrize("touched", [False, True])
async def test_a_standing_permission_holds_in_untouched_chats_alone(
    chat: ObedientChat, touched: bool
) -> None:
    for act, ways in calls(chat.web.host).items():
        if asks(act, touched=False) != "unless granted":
            continue
        await chat.store.chats.new_conversation(CHAT)
        grants = {"schedule": "schedule", "request": POST.format(host=chat.web.host)}
        await grant(chat.store, CHAT, grants.get(act, f"{act}:app"), "Olga")
        if touched:
            await chat.say("hello", stranger=PAGE)
        assert len(await scopes(chat, order(*ways[0]))) == int(touched), act


async def test_a_permission_covers_what_it_named_and_no_more(chat: ObedientChat) -> None:
    host = chat.web.host
    await grant(chat.store, CHAT, f"network:{host}", "Olga")  # as questions about hosts once were
    await grant(chat.store, CHAT, POST.format(host=host), "Olga")

    async def asked(command: str) -> int:
        await chat.store.chats.new_conversation(CHAT)  # what a host answers touches the old one
        return len(await scopes(chat, order("bash", json.dumps({"command": command}))))

    script = f"import urllib.request as u; u.urlopen('http://{host}/', b'x')"
    assert await asked(f"curl -sd x http://{host}/") == 0
    assert await asked(f"curl -sd y http://{host}/?c=d") == 0
    assert chat.web.seen == [f"{host}/", f"{host}/?c=d"]
    assert await asked(f"curl -sd x http://{host}/b") == 1
    assert await asked(f"curl -sX PUT http://{host}/") == 1
    assert await asked(f'python3 -c "{script}"') == 1
    assert len(chat.web.seen) == 2


def test_what_is_not_in_the_table_asks() -> None:
    assert asks("unheard of", touched=False) == "unless granted"
    assert asks("unheard of", touched=True) == "always"
    rows = [f"| {act.what} | {act.untouched} | {act.touched} |" for act in ACTS.values()]
    head = "| | a chat that no stranger's text has touched | one that it has |"
    documentation = Path("docs/security.md").read_text("utf-8")
    assert "\n".join([head, "|---|---|---|", *rows]) in documentation


async def test_it_asks_with_the_whole_text_and_says_what_touched_the_chat_and_when(
    chat: ObedientChat,
) -> None:
    await chat.say("hello", stranger=PAGE)
    await chat.say(NOTE)
    [request] = chat.asked
    assert request.what == "Remember: The code is 4711."
    assert request.because == told(await chat.store.taints.of_chat(CHAT), "UTC")
    assert request.because.startswith(f"{PAGE} (")
    assert await chat.harm() == []


async def test_always_is_once_in_a_touched_chat(chat: ObedientChat) -> None:
    chat.decides = "chat"
    await chat.say("hello", stranger=PAGE)
    assert await scopes(chat, NOTE) == ["remember"]
    assert await chat.store.approvals.grants(CHAT) == []
    assert await scopes(chat, order("remember", '{"note": "More."}')) == ["remember"]


async def test_what_is_too_long_to_be_shown_whole_is_denied(
    chat: ObedientChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.approvals.LONGEST", 12_000)
    chat.decides = "once"
    await chat.say("hello", stranger=PAGE)
    long = "x" * 13_000
    await chat.say(order("write_file", f'{{"path": "/repos/app/new", "content": "{long}"}}'))
    assert (chat.asked, await chat.harm()) == ([], [])


async def test_it_lasts_over_turns_compaction_another_try_and_a_restart(
    chat: ObedientChat, tmp_path: Path
) -> None:
    finished = await chat.say(order("web_fetch", f'{{"url": "http://{chat.web.host}/"}}'))
    assert finished.reason == "done"
    found = [f"page http://{chat.web.host}/"]
    assert await sources(chat) == found
    conversation, entries = await chat.store.transcript.current(CHAT)
    assert conversation is not None
    gone = [entry.id for entry in entries]
    assert await chat.store.transcript.compact(conversation, Compaction(gone[-1], {}, gone, "sum"))
    assert await sources(chat) == found
    last = await chat.store.turns.last(CHAT)
    assert last is not None
    await chat.store.turns.retry(last[0])
    assert await sources(chat) == found
    async with open_store(tmp_path / "voltaire.db") as again:
        assert [taint.source for taint in await again.taints.of_chat(CHAT)] == found


async def test_it_lasts_over_a_change_to_a_model_with_a_small_window(chat: ObedientChat) -> None:
    await chat.say("hello " * 3000, stranger=PAGE)
    await chat.say("again " * 3000)
    chat.window = 4096  # both no longer fit: the page is summed up
    assert await scopes(chat, NOTE) == ["remember"]
    [(compacted,)] = await chat.store.database.all("SELECT compacted FROM conversations")
    assert (compacted > 0, await sources(chat)) == (True, [PAGE])


async def test_it_lasts_over_a_backup_and_its_restore(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    async with open_store(state / "voltaire.db") as store:
        assert await store.inbox.add(Incoming(CHAT, "test", "1", "hi", stranger=PAGE))
        [row] = await store.inbox.waiting(CHAT)
        await store.turns.begin("t1", [row], RenderedMessage("", User("hi")))
        await store.notes.add(CHAT, "The code is 4711.", stranger=PAGE)
        spec = JobSpec(CHAT, "task", "", dump(Once(datetime.now(UTC))), "UTC", "look", {})
        await store.jobs.add(replace(spec, stranger=PAGE))
    work = state / "chats" / "tg-111" / "work"
    work.mkdir(parents=True)
    WorkspaceTaints(work.with_name("strangers.json")).add("file a")
    await backup(state, tmp_path / "b.tar.gz", None, secrets=False)
    WorkspaceTaints(work.with_name("strangers.json")).clear(1 << 60)
    async with open_store(state / "voltaire.db") as store:
        assert await store.taints.clear(CHAT, 1 << 60, "Olga") == 1
    await restore(tmp_path / "b.tar.gz", state)
    async with open_store(state / "voltaire.db") as store:
        assert [taint.source for taint in await store.taints.of_chat(CHAT)] == [PAGE]
        assert [note.stranger for note in await store.notes.all(CHAT)] == [PAGE]
        assert [job.spec.stranger for job in await store.jobs.of_chat(CHAT)] == [PAGE]
    files = WorkspaceTaints(work.with_name("strangers.json")).open()
    assert [taint.source for taint in files] == ["file a"]


async def test_an_edit_of_a_waiting_message_takes_nothing_from_it(chat: ObedientChat) -> None:
    first = Incoming(CHAT, "test", "1", "look at this", ref="7", stranger=PAGE)
    await chat.store.inbox.add(first)
    await chat.store.inbox.add(Incoming(CHAT, "test", "2", "look", kind="edit", ref="7"))
    [row] = await chat.store.inbox.waiting(CHAT)
    assert (row.incoming.text, row.incoming.stranger) == ("look", PAGE)
    edit = Incoming(CHAT, "test", "3", "see", kind="edit", ref="7", stranger="message of Eve")
    await chat.store.inbox.add(edit)
    [row] = await chat.store.inbox.waiting(CHAT)
    assert (row.incoming.text, row.incoming.stranger) == ("see", "message of Eve")


async def test_an_edit_of_an_answered_message_touches_as_well(chat: ObedientChat) -> None:
    await chat.say("hello")
    assert await scopes(chat, NOTE) == []
    await chat.say("hello, you", kind="edit", stranger="message of Eve")
    assert await sources(chat) == ["message of Eve"]
    assert await scopes(chat, order("remember", '{"note": "B."}')) == ["remember"]


async def test_a_new_conversation_is_untouched_and_the_old_one_stays_touched(
    chat: ObedientChat,
) -> None:
    await chat.say("hello", stranger=PAGE)
    before, _ = await chat.store.transcript.current(CHAT)
    assert before is not None
    await chat.store.chats.new_conversation(CHAT)
    assert await scopes(chat, NOTE) == []
    await chat.store.chats.resume(CHAT, before)
    assert await scopes(chat, order("remember", '{"note": "B."}')) == ["remember"]


async def test_what_was_said_about_it_touches_again_when_it_is_recalled(chat: ObedientChat) -> None:
    await chat.say("what about marmalade", stranger=PAGE)
    await chat.store.chats.new_conversation(CHAT)
    await chat.say(order("recall", '{"query": "marmalade"}'))
    assert await sources(chat) == [PAGE]


async def answer_sent(chat: ObedientChat, message: str) -> None:
    """The newest turn's answer was delivered as that message of the app."""
    [(turn,)] = await chat.store.database.all(
        "SELECT id FROM turns ORDER BY started_at DESC LIMIT 1"
    )
    [row] = await chat.store.outbox.add(CHAT, ['{"text": "x"}'], turn=turn)
    await chat.store.outbox.delivered(row, [message])


async def test_an_answer_of_another_conversation_may_repeat_it(chat: ObedientChat) -> None:
    said = chat.store.taints.of_message
    await chat.say("hello")
    await answer_sent(chat, "1")
    assert (await said(CHAT, "1"), await said(CHAT, "unknown")) == ("", "")
    await chat.store.chats.new_conversation(CHAT)
    await chat.say("hello", stranger=PAGE)
    await answer_sent(chat, "2")
    assert await said(CHAT, "2") == ""  # it is of this conversation, which is touched
    await chat.store.chats.new_conversation(CHAT)
    assert [await said(CHAT, each) for each in ("1", "2", "unknown")] == ["", PAGE, PAGE]
    assert await said("tg:222", "2") == ""


async def test_what_jobs_and_questions_say_may_repeat_it(chat: ObedientChat) -> None:
    timing = dump(Once(datetime(2099, 1, 1, tzinfo=UTC)))
    plain = JobSpec(CHAT, "remind", "later", timing, "UTC", "tea", {})
    kinds = [
        plain,
        replace(plain, stranger=PAGE),
        replace(plain, kind="summary", task="app"),
    ]
    for number, spec in enumerate(kinds):
        job = await chat.store.jobs.add(spec)
        await fall_due(chat.store, job.id, 1_900_000_000 + number)
        [run] = await chat.store.occurrences.of_job(job.id, 1)
        await chat.store.occurrences.post(run.id, CHAT, ['{"text": "x"}'])
        row = await chat.store.outbox.claim(CHAT)
        assert row
        await chat.store.outbox.delivered(row.id, [str(number)])
    said = chat.store.taints.of_message
    assert [await said(CHAT, each) for each in "012"] == ["", PAGE, "repository app"]
    # A question of a group comes to its owner's own chat.
    request = ApprovalRequest("q", "t", "c", "tg:-5", "what", "remember", 2e9, because=PAGE)
    await chat.store.approvals.open(request)
    await chat.store.approvals.shown("q", "tg:-5/8 tg:222/9")
    assert [await said("tg:222", each) for each in ("9", "8")] == [PAGE, ""]


async def test_a_note_carries_it_on_and_never_comes_by_itself(chat: ObedientChat) -> None:
    chat.decides = "once"
    await chat.say("hello", stranger=PAGE)
    await chat.say(NOTE)
    [note] = await chat.store.notes.all(CHAT)
    assert (note.text, note.stranger) == ("The code is 4711.", PAGE)
    await chat.store.chats.new_conversation(CHAT)
    await chat.say("hello")
    _, entries = await chat.store.transcript.current(CHAT)
    assert "4711" not in str(entries)
    await chat.say(order("recall", '{"query": "code"}'))
    assert await sources(chat) == [PAGE]
    assert await chat.store.taints.vouch("note", CHAT, note.id, "Olga")
    await chat.store.chats.new_conversation(CHAT)
    await chat.say("hello")
    assert "4711" in str((await chat.store.transcript.current(CHAT))[1])
    assert await sources(chat) == []


async def test_a_job_carries_it_on(chat: ObedientChat) -> None:
    chat.decides = "once"
    await chat.say("hello", stranger=PAGE)
    await chat.say(order("schedule", '{"when": "in 20 minutes", "task": "look", "kind": "task"}'))
    [job] = await chat.store.jobs.of_chat(CHAT)
    assert job.spec.stranger == PAGE
    submitted: list[Incoming] = []

    async def submit(incoming: Incoming) -> bool:
        submitted.append(incoming)
        return True

    due = int(datetime.now(UTC).timestamp())
    await fall_due(chat.store, job.id, due)
    run = await chat.store.occurrences.of_job(job.id, 1)
    await SubmitTask(submit)(job, run[0])
    await chat.store.chats.new_conversation(CHAT)
    await chat.take(submitted[0])
    assert await sources(chat) == [f"job {job.id}, planned after {PAGE}"]


async def test_files_carry_it_on(chat: ObedientChat) -> None:
    await chat.say("hello", stranger=PAGE)
    await chat.say(order("write_file", '{"path": "made", "content": "x"}'))
    await chat.store.chats.new_conversation(CHAT)
    await chat.say(order("read_file", '{"path": "made"}'))
    assert await sources(chat) == [PAGE]
    assert await scopes(chat, NOTE) == ["remember"]


async def test_a_command_that_changes_nothing_leaves_the_files_untouched(
    chat: ObedientChat,
) -> None:
    await chat.say(order("bash", '{"command": "cat /repos/app/README"}'))
    assert await sources(chat) == ["repository app"]
    assert await chat.sandbox.files.taints() == []
    await chat.say(order("bash", '{"command": "cp /repos/app/README ."}'))
    assert [taint.source for taint in await chat.sandbox.files.taints()] == ["repository app"]


UNNAMED = 'p=re; cat "/${p}pos/app/README" 2>&1'


async def test_a_command_sees_the_repositories_of_others_that_it_names(chat: ObedientChat) -> None:
    """A script that was made before, or a path in pieces, would read them with nobody knowing."""
    await chat.sandbox.files.write("look.sh", b"cat /repos/app/README; grep -r . /repos")
    for command in ("bash look.sh", UNNAMED, "cd ..>/dev/null; cat r*/app/README"):
        finished = await chat.say(order("bash", json.dumps({"command": command})))
        assert finished.reason == "done"
    _, entries = await chat.store.transcript.current(CHAT)
    assert README not in "".join(entry.message.text for entry in entries)
    assert "names /repos" in str(entries)
    assert await sources(chat) == []
    await chat.say(order("bash", '{"command": ": /repos; bash look.sh"}'))
    assert await sources(chat) == ["repository app"]
    before = len((await chat.store.transcript.current(CHAT))[1])
    await chat.say(order("bash", '{"command": "sh look.sh"}'))  # it is touched by that already
    _, entries = await chat.store.transcript.current(CHAT)
    assert README in "".join(entry.message.text for entry in entries[before:])


async def test_a_link_in_the_workspace_leads_to_no_repository_of_others(chat: ObedientChat) -> None:
    await chat.say(order("bash", '{"command": "ln -s /repos/app link"}'))
    await chat.store.chats.new_conversation(CHAT)
    await chat.sandbox.files.vouch(1 << 60)
    for name, given in (
        ("bash", {"command": "cat link/README"}),
        ("grep", {"pattern": "Read", "path": "link"}),
        ("list_files", {"pattern": "*", "path": "link"}),
        ("git_status", {"repo": "link"}),
    ):
        await chat.say(order(name, json.dumps(given)))
    _, entries = await chat.store.transcript.current(CHAT)
    assert README.strip() not in "".join(entry.message.text for entry in entries)
    assert await sources(chat) == []


async def test_near_names_come_from_the_place_that_was_asked_for(chat: ObedientChat) -> None:
    await chat.sandbox.files.write("READYOU", b"x")
    await chat.sandbox.files.mark("file READYOU")
    await chat.say(order("read_file", '{"path": "/skills/x/README"}'))
    assert await sources(chat) == []
    assert "READYOU" not in str((await chat.store.transcript.current(CHAT))[1])
    await chat.say(order("read_file", '{"path": "README"}'))
    assert await sources(chat) == ["file READYOU"]
    assert "READYOU" in str((await chat.store.transcript.current(CHAT))[1])


async def test_a_repository_that_the_owner_calls_theirs_touches_nothing(tmp_path: Path) -> None:
    async with obedient_chat(tmp_path, mine=True) as chat:
        await chat.say(order("bash", '{"command": "cat /repos/app/README"}'))
        await chat.say(order("read_file", '{"path": "/repos/app/README"}'))
        assert await sources(chat) == []


async def test_code_of_strangers_asks_before_it_connects(chat: ObedientChat) -> None:
    await chat.sandbox.files.write("run.sh", f"curl -s http://{chat.web.host}/leak".encode())
    await chat.sandbox.files.mark("file run.sh")
    assert await scopes(chat, order("bash", '{"command": "bash run.sh"}')) == [
        f"network:GET http://{chat.web.host}/leak"
    ]
    assert await chat.harm() == []


async def test_an_owner_vouches_for_what_they_saw_and_no_more(chat: ObedientChat) -> None:
    await chat.say("marmalade", stranger=PAGE)
    [seen] = await chat.store.taints.of_chat(CHAT)
    await chat.say("later", stranger="page http://example.com/")
    assert await chat.store.taints.clear(CHAT, seen.number, "Olga") == 1
    assert await sources(chat) == ["page http://example.com/"]
    [_, late] = [seen, *await chat.store.taints.of_chat(CHAT)]
    assert await chat.store.taints.clear(CHAT, late.number, "Olga") == 1
    assert await scopes(chat, NOTE) == []
    await chat.store.chats.new_conversation(CHAT)
    await chat.say(order("recall", '{"query": "marmalade"}'))
    assert await sources(chat) == []
    rows = await chat.store.database.all("SELECT source, cleared_by FROM taints ORDER BY id")
    assert rows == [(PAGE, "Olga"), ("page http://example.com/", "Olga")]


async def test_files_that_are_vouched_for(chat: ObedientChat) -> None:
    await chat.sandbox.files.mark("file a")
    [seen] = await chat.sandbox.files.taints()
    await chat.sandbox.files.mark("file b")
    assert await chat.sandbox.files.vouch(seen.number) == 1
    assert [taint.source for taint in await chat.sandbox.files.taints()] == ["file b"]


@pytest.mark.parametrize("at", [1e18, -1e18, 1e308, float("inf"), float("nan")])
@pytest.mark.parametrize("zone", ["UTC", "Mars/Base", "../x", "\0", ""])
def test_a_damaged_time_or_zone_stops_no_question(at: float, zone: str) -> None:
    assert told([Taint("page x", at)], zone) == "page x (01 Jan 00:00)"


@pytest.mark.parametrize(
    "record",
    [
        "{",
        '{"open": [{"source": "a", "at": "x", "number": 1}], "next": 2, "cleared": []}',
        '{"open": [{"source": 5, "at": 0.0, "number": 1}], "next": 2, "cleared": []}',
        '{"open": [{"source": "a", "at": 0.0, "number": "1"}], "next": 2, "cleared": []}',
        '{"open": [{"source": "a", "at": 0, "x": 1}], "next": 2, "cleared": []}',
        '{"open": [], "next": "2", "cleared": []}',
        '{"open": {}, "next": 2, "cleared": []}',
    ],
    ids=["cut", "at", "source", "number", "field", "next", "open"],
)
async def test_a_record_that_cannot_be_read_counts_as_a_strangers(
    chat: ObedientChat, record: str
) -> None:
    chat.sandbox.workspace.with_name("strangers.json").write_text(record)
    assert await chat.sandbox.files.taints() != []
    await chat.sandbox.files.mark("file a")
    assert len(await chat.sandbox.files.taints()) == 2


def test_nothing_hides_in_where_it_came_from() -> None:
    assert named("file a\u202egpj.exe\n\x1b[2Jx") == "file a⟨U+202E⟩gpj.exe ⟨U+001B⟩[2Jx"
    assert len(named("x" * 1000)) == 160
