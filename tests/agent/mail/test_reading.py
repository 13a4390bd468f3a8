"""`mail list`, `search`, `read`, `thread` and `save`, of a real Dovecot."""

import json
import os
import socket
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.documents.library import Library
from agent.documents.messages import read
from agent.documents.reading import DocumentReader, parsed_mail
from agent.errors import ToolError
from agent.sandbox.sandbox import Sandbox
from agent.shell.registry import listing
from agent.tools.bash import bash
from agent.tools.context import ToolContext
from fakes.mail_server import PASSWORD, Dovecot
from fakes.mails import PDF, PNG, attachment, head, multipart, plain, typed, uglier, ugly
from fakes.sandbox_box import Box
from fakes.words import saying
from tests.agent.mail.conftest import Mails, mail, numbers


async def test_every_ugly_message_is_read_for_what_it_is(mails: Mails) -> None:
    messages = ugly()
    mails.dovecot.deliver(raw for raw, _, _ in messages.values())
    box = await mails.open()
    listed = json.loads(await mail(box, "list --limit 200 --json"))
    assert len(listed) == len(messages)
    of = [str(each["number"]) for each in reversed(listed)]
    reading = f"for n in {' '.join(of)}; do mail read $n --json > m$n; done"
    await box.text(bash, command=reading, seconds=500)
    for number, (name, (_, words, files)) in zip(of, messages.items(), strict=True):
        with await box.sandbox.files.open(f"m{number}") as file:
            told = json.load(file)
        text = "\n".join((told["subject"], told["text"]))
        assert [word for word in words if word not in text] == [], (name, text[:500])
        shown = [part["name"] for part in told["parts"] if part["kind"] != "text/calendar"]
        assert shown == files, name


@pytest.mark.parametrize("name", uglier())
def test_uglier_messages_are_read_for_what_they_are(name: str) -> None:
    raw, words, files = uglier()[name]
    told: dict[str, Any] = read(raw)
    text = "\n".join((told["sender"], told["subject"], told["text"]))
    assert [word for word in words if word not in text] == [], text[:500]
    assert [part["name"] for part in told["parts"]] == files


async def test_the_newest_are_listed_and_text_of_a_message_touches_the_chat(mails: Mails) -> None:
    mails.dovecot.deliver(plain(f"letter {n}", "tea") for n in range(30))
    box = await mails.open()
    lines = (await mail(box, "list --limit 2")).splitlines()
    assert [line.split("  ")[2:] for line in lines] == [
        ["Bob <bob@example.com>", "letter 29"],
        ["Bob <bob@example.com>", "letter 28"],
    ]
    assert box.strangers == ["mail work"]
    assert await mail(box, "list --folder Sent") == "There is no such message."
    assert len((await mail(box, "list --unread --limit 50")).splitlines()) == 30
    told = await mail(box, "read 1 --question x; mail read 9999; echo $?; mail read")
    assert told == saying("Subject: letter", "no message 9999", "1\n", "usage: mail read")
    for words in (
        "read 99999999999999999999",
        "thread 99999999999999999999",
        "save 99999999999999999999",
    ):
        assert await mail(box, f"{words}; echo $?") == saying(
            "a number or a day is too large", "\n2"
        )
    assert (
        len((await mail(box, "list --unread --limit 50")).splitlines()) == 30
    )  # reading marks nothing


async def test_words_sender_and_day_find_messages_in_any_script(mails: Mails) -> None:
    mails.dovecot.deliver([
        plain("Übergabe", "Der Schlüssel liegt beim Nachbarn.", "a", sender="Eva <eva@example.net>"),
        plain("会議", "明日の会議は三時です", "b"),
        plain("Invoices", "The invoice of November is attached.", "c", sender="Иван <ivan@example.org>"),
    ])  # fmt: skip
    box = await mails.open()
    for words, subject in (
        ("schluessel", "Übergabe"),
        ("ubergabe", "Übergabe"),
        ("会議", "会議"),
        ("invoice november", "Invoices"),
        ("--from EVA@", "Übergabe"),
        ("--from иван", "Invoices"),
        ("eva", "Übergabe"),
    ):
        assert list(await numbers(box, f"search {words}")) == [subject], words
    assert await mail(box, "search november schlüssel") == "There is no such message."
    assert await mail(box, "search '\"*'") == "There is no such message."
    assert await mail(box, "search invoice --since 2100-01-01") == "There is no such message."
    assert await mail(box, "search invoice --since someday; echo $?") == saying("--since", "\n2")


async def test_a_day_begins_in_the_time_zone_of_the_chat(mails: Mails) -> None:
    mails.dovecot.deliver([plain("late", "tea")])
    (path,) = mails.dovecot.inbox.glob("*/*")
    os.utime(path, (0, datetime(2026, 11, 27, 23, 30, tzinfo=UTC).timestamp()))
    box = await mails.open()  # in Paris, where it is half past midnight
    assert list(await numbers(box, "search tea --since 2026-11-28")) == ["late"]
    assert await mail(box, "search tea --since 2026-11-28T01:00") == "There is no such message."
    assert list(await numbers(box, "search tea --since 2026-11-28T01:00+02:00")) == ["late"]


async def test_what_comes_goes_and_moves_is_followed(mails: Mails) -> None:
    mails.dovecot.deliver([plain("one", "tea"), plain("two", "tea")])
    box = await mails.open()
    before = await numbers(box, "search tea")
    next(
        path for path in mails.dovecot.inbox.glob("*/*") if b"Subject: one" in path.read_bytes()
    ).unlink()
    mails.dovecot.deliver([plain("three", "tea")])
    after = await numbers(box, "search tea")
    assert list(after) == ["three", "two"] and after["two"] == before["two"]
    assert after["three"] not in before.values()
    assert await mail(box, f"read {before['one']}") == saying(f"no message {before['one']}")
    index = box.mail["work"].index  # a folder that was made anew has other UIDs
    assert index.missing("INBOX", (1, 3, 2), lambda: [1, 2]) == [2, 1]
    assert index.find(["INBOX"], 9) == []
    assert list(await numbers(box, "search tea")) == ["three", "two"]


async def test_what_the_index_still_lacks_is_told_and_comes_beside(
    mails: Mails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.mail.account.AT_ONCE", 2)
    monkeypatch.setattr("agent.mail.account.BATCH", 2)
    mails.dovecot.deliver(plain(f"letter {n}", f"word{n}", f"{n}") for n in range(9))
    box = await mails.open()
    account = box.mail["work"]
    assert await mail(box, "search word0") == saying("7 older messages are not read in yet")
    assert account._filling
    await account._filling
    assert list(await numbers(box, "search word0")) == ["letter 0"]
    assert len(await numbers(box, "list --unread")) == 9


async def test_a_thread_is_what_answers_each_other(mails: Mails) -> None:
    answer = "In-Reply-To: <a@example.com>\r\nReferences: <z@elsewhere> <a@example.com>\r\n"
    mails.dovecot.deliver([
        plain("plan", "one", "a"),
        plain("other", "two", "b"),
        plain("Re: plan", "three", "c", more=answer),
        plain("AW: plan", "four", "d", more="In-Reply-To: <c@example.com>\r\n"),
    ])  # fmt: skip
    box = await mails.open()
    found = await numbers(box)
    for subject in ("plan", "Re: plan", "AW: plan"):
        assert list(await numbers(box, f"thread {found[subject]}")) == [
            "plan",
            "Re: plan",
            "AW: plan",
        ]
    assert list(await numbers(box, f"thread {found['other']}")) == ["other"]


async def test_attachments_come_into_the_workspace_and_into_the_documents(mails: Mails) -> None:
    text = b"The rent is 940 euros a month."
    mails.dovecot.deliver(
        [
            head("x", "1")
            + multipart(
                "mixed",
                typed("text/plain", b"two files"),
                attachment("../../.profile", "text/plain", text),
                attachment("photo.png", "image/png", PNG),
            )
        ]
    )
    box = await mails.open()
    box.documents = lambda: Library(
        mails.store.documents, DocumentReader(mails.sandboxes, {}), "cli"
    )
    assert await mail(box, "list") == saying("[2 attached]")
    saved = (await mail(box, "save 1")).splitlines()
    assert saved == ["/workspace/mail/1/1-_profile", "/workspace/mail/1/2-photo.png"]
    assert await box.text(
        bash,
        command=f"cat {saved[0]}; cmp <(cat {saved[1]}) <(printf '{PNG.decode('latin-1')!r}') ; true",
    ) == saying(text.decode())
    assert [taint.source for taint in await box.sandbox.files.taints()] == ["mail work"]
    told = await box.text(bash, command=f"docs add {saved[0]}; docs search rent")
    assert told == saying("940 euros")
    assert await mail(box, "save 1 3; echo $?") == saying("has 2 attachments", "1")


async def test_a_saved_message_is_a_document(mails: Mails) -> None:
    box = await mails.open()
    box.documents = lambda: Library(
        mails.store.documents, DocumentReader(mails.sandboxes, {}), "cli"
    )
    await box.sandbox.files.write("offer.eml", ugly()["koi8 that says it is utf-8"][0])
    assert await box.text(bash, command="docs add offer.eml; docs search ноябрь") == saying(
        "Счёт за ноябрь", "From: Bob"
    )


async def test_a_large_attachment_is_whole(mails: Mails) -> None:
    content = PDF + bytes(range(256)) * 60_000  # more than a program may print
    mails.dovecot.deliver(
        [head("x", "1") + multipart("mixed", attachment("a.pdf", "application/pdf", content))]
    )
    box = await mails.open()
    await mail(box, "list")
    assert await mail(box, "save 1 1 > /dev/null; stat -c %s mail/1/1-a.pdf") == str(len(content))


async def test_a_message_is_taken_apart_once_to_be_seen_and_once_for_a_file(
    mails: Mails, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails.dovecot.deliver(
        [head("x", "1") + multipart("mixed", attachment("a.txt", "text/plain", b"tea"))]
    )
    box = await mails.open()
    await mail(box, "list")
    acts = list[str]()

    async def counted(box: Sandbox, raw: bytes, act: str, *words: str) -> bytes:
        acts.append(act)
        return await parsed_mail(box, raw, act, *words)

    monkeypatch.setattr("agent.mail.account.parsed_mail", counted)
    assert await mail(box, "save 1; cat mail/1/1-a.txt") == "/workspace/mail/1/1-a.txt\ntea"
    assert acts == ["read", "part"]


async def test_a_message_that_breaks_its_reader_hides_no_other(
    mails: Mails, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(box: Sandbox, raw: bytes, act: str, *words: str) -> bytes:
        if b"poison" in raw:
            raise ToolError("Its time was up.")
        return await parsed_mail(box, raw, act, *words)

    mails.dovecot.deliver(plain(f"letter {n}", "poison" if n == 3 else "tea", f"{n}") for n in range(6))  # fmt: skip
    monkeypatch.setattr("agent.mail.account.parsed_mail", broken)
    box = await mails.open()
    whole = ["letter 5", "letter 4", "(not readable)", "letter 2", "letter 1", "letter 0"]
    assert [each.rpartition("  ")[2] for each in (await mail(box, "list")).splitlines()] == whole


async def test_an_owner_lets_each_chat_read_an_account_once(mails: Mails) -> None:
    mails.dovecot.deliver([plain("secret plan", "tea")])
    box = await mails.open()
    box.allows = False
    for command in (
        "list",
        "search tea",
        "read 1",
        "thread 1",
        "save 1",
        "draft --to a@b.example --subject x y",
    ):
        assert await mail(box, command) == saying("The owner said no") and not box.strangers
    box.allows, box.asked = True, []
    await mail(box, "list; mail search tea; mail read 1")
    ((what, scope),) = box.asked
    assert scope == "mail:work" and what == saying("work", "anna@example.org")
    box.tainted = True  # the permission holds although reading touches the chat
    again = await mails.open()
    again.tainted = True
    assert await mail(again, "list") == saying("secret plan") and not again.asked
    other = await mails.open(chat="other")
    await mail(other, "list")
    assert [scope for _, scope in other.asked] == ["mail:work"]
    mails.granted["cli"].clear()
    await mail(again, "list")
    assert [scope for _, scope in again.asked] == ["mail:work"]


async def test_no_account_no_command(mails: Mails) -> None:
    box = await mails.open()
    assert "\nmail list" in listing(ToolContext(box.sandbox, mail=box.mail))
    assert "mail" not in listing(ToolContext(box.sandbox))
    box.mail = {}
    assert await mail(box, "list; echo $?") == saying("no mail account", "docs/mail.md", "1")


async def test_each_has_help(mails: Mails) -> None:
    box = await mails.open()
    for command in ("list", "search", "read", "thread", "save", "draft", "send"):
        assert await mail(box, f"{command} --help") == saying(f"usage: mail {command}", "--account")


async def test_what_the_server_refuses_is_said_without_the_password(
    mails: Mails, caplog: pytest.LogCaptureFixture
) -> None:
    mails.dovecot.folder.joinpath("wrong").write_text("another password of words")
    box = await mails.open(password_file=str(mails.dovecot.folder / "wrong"))
    told = await mail(box, "list; echo $?")
    assert told == saying("mail server of work fails", "\n1") and "another password" not in told
    box = await mails.open(password_file="/nonexistent/file")
    assert await mail(box, "list") == saying("password_file", "cannot be read")
    box = await mails.open(imap="imap://127.0.0.1:1")
    assert await mail(box, "list") == saying("mail server of work fails", "refused")
    box = await mails.open(folders=["Nowhere"])
    told = await mail(box, "list")
    assert told.startswith("mail: The mail server of work fails: Mailbox doesn't exist: Nowhere")
    assert PASSWORD not in caplog.text and "another password" not in caplog.text


async def test_a_connection_that_the_server_has_closed_is_opened_again(mails: Mails) -> None:
    mails.dovecot.deliver([plain("one", "tea")])
    box = await mails.open()
    await mail(box, "list")
    connection = box.mail["work"]._connection
    assert connection and connection._box
    connection._box.client.sock.shutdown(socket.SHUT_RDWR)
    assert await mail(box, "list") == saying("one")
    connection._box.client.sock.close()
    told = await mail(box, "draft --to bob@example.com --subject Tea Maybe.")
    assert told == "It is among the drafts."


async def test_the_index_holds_no_text_and_is_private(mails: Mails) -> None:
    mails.dovecot.deliver([plain("subject line", "a sentence that nobody else may read")])
    box = await mails.open()
    await mail(box, "list")
    (path,) = (mails.state / "mail").glob("*.db")
    with closing(sqlite3.connect(path)) as database:
        assert "a sentence that" not in "\n".join(database.iterdump())
    assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0


PLACES = {  # imap and smtp, by the ports of the server
    "from the first byte": ("imaps://{host}:{imaps}", "smtps://{host}:{submissions}"),
    "by STARTTLS": ("imap://{host}:{imap}", "smtp://{host}:{submission}"),
}


@pytest.mark.parametrize("way", PLACES)
async def test_connections_beyond_this_machine_are_encrypted(
    mails: Mails, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """127.0.0.2 counts as another machine."""
    dovecot = Dovecot(mails.relay.port, user=mails.dovecot.user)
    dovecot.encrypt()
    send = "send --to bob@example.com --subject Tea Yes"

    async def box(server: Dovecot, host: str) -> Box:
        ports = {
            name: getattr(server, name) for name in ("imap", "imaps", "submission", "submissions")
        }
        imap, smtp = (each.format(host=host, **ports) for each in PLACES[way])
        return await mails.open(imap=imap, smtp=smtp)

    with dovecot.running():
        dovecot.deliver([plain("one", "tea")])
        known = await box(dovecot, "127.0.0.2")
        assert await mail(known, "list") == saying("fails", "certificate verify failed")
        assert await mail(known, send) == saying("It was not sent", "certificate verify failed")
        monkeypatch.setenv("SSL_CERT_FILE", str(dovecot.certificate))
        assert await mail(await box(dovecot, "127.0.0.2"), "list") == saying("one")
        assert await mail(known, send) == "It was sent."
        if way == "from the first byte":  # a certificate for another
            assert await mail(await box(dovecot, "127.0.0.1"), "list") == saying("fails")
    if way == "by STARTTLS":
        plain_box = await box(mails.dovecot, "127.0.0.2")
        assert await mail(plain_box, "list") == saying("fails", "TLS not supported")
        assert await mail(plain_box, send.replace("Yes", "No")) == saying(
            "It was not sent", "STARTTLS"
        )
