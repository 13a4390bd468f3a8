"""`mail draft` and `mail send`: seen whole by an owner, sent once, and what goes wrong is said."""

import asyncio
from email import message_from_bytes, policy
from email.message import EmailMessage

import pytest

from agent.errors import UsageError
from agent.leaks import LeakDetector
from agent.mail.letter import compose
from agent.tools.bash import bash
from fakes.mail_server import PASSWORD
from fakes.mails import plain
from fakes.stored import grant
from fakes.words import saying
from tests.agent.mail.conftest import Mails, mail, numbers

SEND = "send --to bob@example.com --subject Tea 'At three?'"


def letters(mails: Mails) -> list[EmailMessage]:
    return [message_from_bytes(raw, policy=policy.default) for _, raw in mails.relay.came]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "text/csv"),
        ("a.csv.gz", "application/octet-stream"),
        ("a.tar.gz", "application/octet-stream"),
        ("a.svgz", "application/octet-stream"),
        ("a.txt.bz2", "application/octet-stream"),
        ("a.eml", "application/octet-stream"),
        ("a", "application/octet-stream"),
    ],
)
def test_a_packed_file_is_not_called_what_is_in_it(name: str, kind: str) -> None:
    letter = compose({"From": "a@x.org", "To": "b@x.org"}, "Hi.", [(name, b"\x1f\x8b\0")], [])
    (file,) = letter.iter_attachments()
    assert (file.get_content_type(), file.get_payload(decode=True)) == (kind, b"\x1f\x8b\0")


FIELDS = {"From": "Anna <anna@example.org>", "To": "bob@example.com", "Subject": "Tea"}
BCC = "=?utf-8?q?Tea=0d=0aBcc:_eve@example.net?="


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        *(("Subject", f"a{mark}Bcc: eve@example.net", "one line") for mark in "\r\n\v\x1c\x85\u2028"),
        ("Subject", BCC, "one line"),
        ("To", f"{BCC} <bob@example.com>", "one line"),
        ("To", "bob@", "one line"),
        *(
            ("To", to, "is no address")
            for to in (
                "bob@example.com; carl@example.com",
                "bob@example.com carl@example.com",
                "Bob <bob@example.com> <eve@example.net>",
                "eve@example.net <bob@example.com>",
                "bob@example.com, carl",
                "bob@exämple.com",
                "undisclosed-recipients:;",
                " , ",
            )
        ),
    ],
)  # fmt: skip
def test_a_header_is_what_an_owner_sees_or_there_is_no_letter(
    name: str, value: str, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        compose({**FIELDS, name: value}, "At three?", [], [])


@pytest.mark.parametrize(
    "id",
    [
        "<DB7PR04MB49711F5F2DE0F2B8B6C33D1FE2D10@DB7PR04MB4971.eurprd04.prod.outlook.com>",
        f"<{BCC}@example.com>",
    ],
    ids=["a long one", "one with another header in it"],
)
def test_an_answer_names_the_ids_of_messages_as_they_are(id: str) -> None:
    letter = message_from_bytes(
        bytes(compose(FIELDS, "Yes.", [], ["<a@example.com>", "<ä@b>", id]))
    )
    assert (letter["In-Reply-To"], letter["References"].split()) == (id, ["<a@example.com>", id])
    assert letter["Bcc"] is None and letter.get_payload() == "Yes.\r\n"


async def test_a_letter_goes_out_once_an_owner_has_seen_all_of_it(mails: Mails) -> None:
    box = await mails.open()
    await box.sandbox.files.write("plan.csv", b"a,b\n1,2\n")
    words = "Grüße,\nund bis bald"
    command = "printf 'Grüße,\\nund bis bald' | mail send --to 'Bob B <bob@example.com>' --cc c@example.com --bcc d@example.com --subject 'Tee für zwei' --file plan.csv"
    assert await box.text(bash, command=command) == "It was sent."
    (_, (what, scope)) = box.asked
    assert scope == "mail-send:work"
    assert what == saying(
        "From: Anna <anna@example.org>",
        "Bob B <bob@example.com>",
        "Cc: c@example.com",
        "Bcc: d@example.com",
        "Subject: Tee für zwei",
        "plan.csv (8 bytes)",
        words,
    )
    ((recipients, raw),) = mails.relay.came
    assert recipients == ["bob@example.com", "c@example.com", "d@example.com"]
    (letter,) = letters(mails)
    body = letter.get_body()
    assert body and body.get_content().replace("\r\n", "\n").strip() == words
    assert letter["Subject"] == "Tee für zwei" and not letter["Bcc"] and b"d@example.com" not in raw
    assert [part.get_filename() for part in letter.iter_attachments()] == ["plan.csv"]
    assert list(await numbers(box, "list --folder Sent")) == ["Tee für zwei"]


@pytest.mark.parametrize(
    "command",
    [
        "head -c 27000000 /dev/zero | mail send --to b@c.example --subject x",
        "truncate -s 30M big; mail send --to b@c.example --subject x --file big hi",
        "truncate -s 20M a b; mail draft --to b@c.example --subject x --file a --file b hi",
        "head -c 20000000 /dev/zero >a; yes | head -c 20000000 | mail draft --to b@c.example --subject x --file a",
        "yes | mail send --to b@c.example --subject x",
    ],
)
async def test_a_letter_without_end_is_refused(mails: Mails, command: str) -> None:
    box = await mails.open()
    assert await box.text(bash, command=command) == saying("at most 25 MiB")
    assert (mails.relay.came, [what for what, _ in box.asked if "b@c.example" in what]) == ([], [])


async def test_a_file_goes_out_under_a_name_that_reads_as_it_is(mails: Mails) -> None:
    box = await mails.open()
    command = "touch $'a\\nb' $'annex\\u202efdp.exe'; mail send --to b@c.example --subject x --file $'a\\nb' --file $'annex\\u202efdp.exe' hi"
    assert await box.text(bash, command=command) == "It was sent."
    (letter,) = letters(mails)
    names = [part.get_filename() for part in letter.iter_attachments()]
    assert names == ["a b", "annexfdp.exe"]


async def test_nothing_is_sent_without_an_owner(mails: Mails) -> None:
    box = await mails.open()
    await mail(box, "list")
    box.allows = False
    assert await mail(box, SEND) == saying("The owner said no", "exit code: 1")
    assert mails.relay.came == []
    box.allows = True
    await grant(mails.store, "cli", "mail-send:work", "Olga")  # no permission stands for letters
    await mail(box, SEND)
    assert [scope for _, scope in box.asked] == ["mail:work", "mail-send:work", "mail-send:work"]


async def test_the_same_letter_is_not_sent_twice(mails: Mails) -> None:
    box = await mails.open()
    assert await mail(box, f"{SEND} & mail {SEND}; wait") == saying(
        "It was sent.", "This very letter"
    )
    assert await mail(await mails.open(), SEND) == saying("This very letter was sent on")
    assert len(mails.relay.came) == 1
    assert await mail(box, SEND.replace("three", "four")) == "It was sent."
    assert len(mails.relay.came) == 2


async def test_a_letter_of_which_nobody_knows_is_said_so_and_not_sent_again(mails: Mails) -> None:
    box = await mails.open(smtp=f"smtp://127.0.0.1:{mails.relay.port}")
    mails.relay.fails = "drops"
    assert await mail(box, SEND) == saying("Nobody knows whether it was sent", "exit code: 1")
    mails.relay.fails = ""
    assert await mail(await mails.open(), SEND) == saying(
        "This very letter was sent on", "or may have been"
    )
    assert len(mails.relay.came) == 1


@pytest.mark.parametrize("direct", [True, False], ids=["the server", "what stands behind it"])
async def test_a_letter_that_is_refused_can_be_sent_later(mails: Mails, direct: bool) -> None:
    box = await mails.open(**({"smtp": f"smtp://127.0.0.1:{mails.relay.port}"} if direct else {}))
    two = SEND.replace("bob@example.com", "bob@example.com,c@example.com")
    mails.relay.refuses = "c@example.com"
    assert await mail(box, two) == saying("It was not sent", "no such mailbox here", "exit code: 1")
    mails.relay.refuses, mails.relay.fails = "", "554 5.7.1 this is spam"
    assert await mail(box, two) == saying("It was not sent", "spam")
    mails.relay.fails = ""
    assert mails.relay.came == []
    assert await mail(box, two) == "It was sent."
    assert [recipients for recipients, _ in mails.relay.came] == [
        ["bob@example.com", "c@example.com"]
    ]


async def test_a_letter_whose_program_was_killed_may_have_been_sent(mails: Mails) -> None:
    box = await mails.open(smtp=f"smtp://127.0.0.1:{mails.relay.port}")
    account = box.mail["work"]
    begun, table = asyncio.Event(), account.store.key_values
    put = table.put

    async def killed(key: str, value: object, **options: bool) -> None:
        await put(key, value, **options)
        begun.set()
        await asyncio.Event().wait()

    object.__setattr__(table, "put", killed)
    sending = asyncio.create_task(mail(box, SEND))
    await begun.wait()
    object.__delattr__(table, "put")
    assert await mail(await mails.open(), SEND) == saying("or may have been")
    for task in asyncio.all_tasks():
        if task.get_coro().__name__ == "_send":  # type: ignore[union-attr]
            task.cancel()
    sending.cancel()
    await asyncio.wait([sending])
    assert mails.relay.came == []


async def test_an_answer_goes_to_its_sender_into_the_thread(mails: Mails) -> None:
    mails.dovecot.deliver(
        [
            plain(
                "Tea",
                "At three?",
                "a",
                sender="Bob <bob@example.com>",
                more="Reply-To: eve@example.net\r\n",
            )
        ]
    )
    box = await mails.open()
    number = (await numbers(box))["Tea"]
    assert await mail(box, f"send --reply {number} Yes.") == "It was sent."
    (letter,) = letters(mails)
    assert (letter["To"], letter["Subject"], letter["In-Reply-To"]) == (
        "Bob <bob@example.com>",
        "Re: Tea",
        "<a@example.com>",
    )
    assert [to for to, _ in mails.relay.came] == [["bob@example.com"]]
    await mail(box, "list --folder Sent")
    assert list(await numbers(box, f"thread {number}")) == ["Tea", "Re: Tea"]


@pytest.mark.parametrize(
    ("sender", "shown"),
    [
        ("=?utf-8?q?M=C3=BCller=2C_Anna?= <anna@example.com>", '"Müller, Anna" <anna@example.com>'),
        ('"Smith, Bob (Sales)" <bob@example.com>', '"Smith, Bob (Sales)" <bob@example.com>'),
        ("carl@example.com", "carl@example.com"),
        ("<dora@example.com>", "dora@example.com"),
        ("eve@example.com <fred@example.com>", '"eve@example.com" <fred@example.com>'),
    ],
)
async def test_a_sender_is_answered_whatever_its_name(
    mails: Mails, sender: str, shown: str
) -> None:
    mails.dovecot.deliver([plain("Tea", "At three?", "a", sender=sender)])
    box = await mails.open()
    number = (await numbers(box))["Tea"]
    assert await mail(box, f"send --reply {number} Yes.") == "It was sent."
    (letter,) = letters(mails)
    assert str(letter["To"]) == shown and shown in box.asked[-1][0]
    assert [to for to, _ in mails.relay.came] == [[shown.rpartition("<")[2].rstrip(">")]]


async def test_a_draft_is_kept_and_not_sent(mails: Mails) -> None:
    box = await mails.open()
    told = await mail(box, "draft --to bob@example.com --bcc d@example.com --subject Tea Maybe.")
    assert told == "It is among the drafts." and mails.relay.came == []
    assert list(await numbers(box, "list --folder Entwürfe")) == ["Tea"]
    (path,) = mails.dovecot.inbox.glob(".Entw*/*/*,S=*")
    assert path.name.endswith(":2,DS") or ":2,D" in path.name
    assert "Bcc: d@example.com" in path.read_text()
    assert [scope for _, scope in box.asked] == ["mail:work"]
    box.tainted = True
    await mail(box, "draft --to bob@example.com --subject Tea Maybe not.")
    assert box.asked[-1][1] == "mail-draft:work"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--subject x y", "--to"),
        ("--to b@c.example y", "--subject is missing"),
        ("--to bob --subject x y", "'bob' is no address"),
        ("--to 'b@c.example\nBcc: eve@example.net' --subject x y", "one line"),
        ("--to b@c.example --subject 'x\nBcc: eve@example.net' y", "one line"),
        ("--to b@c.example --subject x y --file nothing", "nothing"),
        ("--to b@c.example --reply 4711 y", "no message 4711"),
    ],
)
async def test_what_cannot_be_sent_is_said(mails: Mails, words: str, told: str) -> None:
    box = await mails.open()
    for act in ("send", "draft"):
        assert await mail(box, f"{act} {words}") == saying(told, "exit code:")
    assert mails.relay.came == []


async def test_an_account_without_a_server_for_letters_only_reads(mails: Mails) -> None:
    box = await mails.open(smtp="")
    assert await mail(box, SEND) == saying("cannot send", "smtp")


async def test_no_secret_goes_out_with_a_letter(mails: Mails) -> None:
    box = await mails.open()
    leaks = LeakDetector(
        {"agent.mail.work.password_file": PASSWORD, "telegram.token": "123456:hunter2hunter2"}
    )
    box.leaks = leaks
    await box.sandbox.files.write("held", b"123456:hunter2hunter2")
    for words in (
        "--subject x $(cat held)",
        "--subject x < held",
        "--subject x y --file held",
    ):
        assert await mail(box, f"send --to b@c.example {words}") == saying("telegram.token")
    assert mails.relay.came == []
