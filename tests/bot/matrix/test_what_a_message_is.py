"""Paths that are no commands, and answers to files and long posts."""

import re
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from agent.files import media_type
from bot.intake import CUT, LONGEST, Quotation
from bot.matrix.channel import message_type
from bot.matrix.encryption import MEGOLM, Encryption
from bot.matrix.homeserver import Homeserver, HomeserverAway
from bot.matrix.incoming_message import incoming_message, parse_message, words
from bot.matrix.session import MatrixSession
from fakes.matrix_person import MatrixPerson
from fakes.matrix_running import MatrixScenario
from fakes.patience import soon

from .test_rooms import said


def event(**content: Any) -> dict[str, Any]:
    said = {"msgtype": "m.text", "body": "look", **content}
    return {"event_id": "$2", "sender": "@o:x", "origin_server_ts": 1000, "content": said}


@pytest.mark.parametrize(
    ("name", "mime", "kind"),
    [
        ("a.png", "image/png", "m.image"),
        ("a.MP3", "audio/mpeg", "m.audio"),
        ("a.mp4", "video/mp4", "m.video"),
        ("a.svg", "image/svg+xml", "m.file"),
        ("a.html", "text/html", "m.file"),
        ("a.svgz", "application/octet-stream", "m.file"),
        ("a.svg.gz", "application/octet-stream", "m.file"),
        ("a.mp3.gz", "application/octet-stream", "m.file"),
        ("a.tiff.bz2", "application/octet-stream", "m.file"),
        ("a.tar.gz", "application/octet-stream", "m.file"),
        ("a.csv.xz", "application/octet-stream", "m.file"),
        ("a", "application/octet-stream", "m.file"),
    ],
)
def test_a_file_is_sent_as_what_it_is(name: str, mime: str, kind: str) -> None:
    assert (media_type(name), message_type(mime)) == (mime, kind)


@pytest.mark.parametrize(
    ("content", "line", "files"),
    [
        ({"body": "x" * LONGEST}, "they: " + "x" * LONGEST, 0),
        ({"body": "x" * LONGEST + "y"}, "they: " + "x" * LONGEST + CUT, 0),
        ({"msgtype": "m.image", "body": "a.png", "url": "mxc://x/1"}, "they: [a.png]", 1),
        ({"msgtype": "m.file", "body": "a.pdf", "url": "mxc://x/1"}, "they: [a.pdf]", 1),
        ({"msgtype": "m.audio", "body": "a.ogg", "url": "mxc://x/1"}, "they: [a.ogg]", 1),
        ({"msgtype": "m.video", "body": "a.mp4", "url": "mxc://x/1"}, "they: [a.mp4]", 1),
        (
            {"msgtype": "m.image", "body": "my cat", "filename": "a.png", "url": "mxc://x/1"},
            "they: my cat [a.png]",
            1,
        ),
        (
            {"msgtype": "m.file", "body": "a", "file": {"url": "mxc://x/1", "key": {}}},
            "they: [a]",
            1,
        ),
        (
            {"msgtype": "m.location", "body": "here", "geo_uri": "geo:1,2"},
            "they: [location geo:1,2]",
            0,
        ),
        ({"msgtype": "m.emote", "body": "waves"}, "they: * waves", 0),
    ],
)
def test_what_is_answered_comes_whole_or_the_cut_is_marked(
    content: dict[str, Any], line: str, files: int
) -> None:
    earlier = parse_message("!r:x", event(**content))
    message = parse_message(
        "!r:x", event(**{"m.relates_to": {"m.in_reply_to": {"event_id": "$1"}}})
    )
    quote = Quotation("they", words(earlier, ()), files=earlier.files)
    row = incoming_message(message, sender="", me=(), quote=quote, origin="owner")
    assert row.quote == line
    assert [file.answered for file in quote.attachments] == [True] * files
    assert row.body.count('"answered": true') == files


HTML = "org.matrix.custom.html"
A = '<a href="https://a.b/1">here</a>'


@pytest.mark.parametrize(
    ("body", "html", "read"),
    [
        ("see here", f"see {A}", "see here (https://a.b/1)"),
        ("here or here", f'{A} or <a href="c:2">here</a>', "here (https://a.b/1) or here (c:2)"),
        ("[here](https://a.b/1)", A, "[here](https://a.b/1)"),
        ("here: https://a.b/1", f"here: {A}", "here: https://a.b/1"),
        ("a bold word", 'a <a href="c:2"><b>bold</b> word</a>', "a bold word (c:2)"),
        ("**here**", f"<b>{A}</b>", "**here (https://a.b/1)**"),
        ("Ada: look", '<a href="https://matrix.to/#/@ada:x">Ada</a>: look', "Ada: look"),
        ("join us", 'join <a href="https://matrix.to/#/#r:x">us</a>', "join us (https://matrix.to/#/#r:x)"),
        ("other words", A, "other words (https://a.b/1)"),
        ("answer", f"<mx-reply>{A}</mx-reply>answer", "answer"),
        ("a &amp; b", 'a &amp; <a href="c:2?x=1&amp;y=2">b</a>', "a &amp; b (c:2?x=1&y=2)"),
        ("here", "<a>here</a> <a href>here</a> <a href=", "here"),
        ("here or here", 'here or <a href="c:2">here</a>', "here or here (c:2)"),
        ("here, here, here", f'here, <b>here</b>, {A}', "here, here, here (https://a.b/1)"),
        ("here here", f"{A} {A}", "here (https://a.b/1) here (https://a.b/1)"),
        ("then the end", 'then <a href="c:2">the</a> end', "then the (c:2) end"),
        ("👩‍👩‍👧 👍 👍", '👩‍👩‍👧 👍 <a href="c:2">👍</a>', "👩‍👩‍👧 👍 👍 (c:2)"),
        ("合同 合同", '合同 <a href="c:2">合同</a>', "合同 合同 (c:2)"),
        ("a\nhere\nhere", '<p>a</p>here<br/><a href="c:2">here</a>', "a\nhere\nhere (c:2)"),
        ("here here", f'<mx-reply>here</mx-reply>{A} <a href="c:2">here</a>', "here (https://a.b/1) here (c:2)"),
        ("(x) (x)", '(x) <a href="c:2">(x)</a>', "(x) (x) (c:2)"),
        ("Ada here here", '<a href="https://matrix.to/#/@here:x">Ada</a> here <a href="c:2">here</a>',
         "Ada here here (c:2)"),
        ("one", '<a href="c:2">two</a> <a href="d:3">three</a>', "one (c:2) (d:3)"),
        ("here.", '<a href="c:2">here</a> is more', "here (c:2)."),
        ("docs, https://a.b/1/x", '<a href="https://a.b/1">docs</a>, https://a.b/1/x', "docs (https://a.b/1), https://a.b/1/x"),
        ("a https://a.b", '<a href="https://a">a</a> https://a.b', "a (https://a) https://a.b"),
        ("q https://a.b?x=1", '<a href="https://a.b">q</a> https://a.b?x=1', "q (https://a.b) https://a.b?x=1"),
        ("q https://a.b/#k", '<a href="https://a.b/">q</a> https://a.b/#k', "q (https://a.b/) https://a.b/#k"),
        ("here (https://a.b/1).", f"here ({A}).", "here (https://a.b/1)."),
    ],
)  # fmt: skip
def test_links_of_the_formatted_body_alone_are_read(body: str, html: str, read: str) -> None:
    message = parse_message("!r:x", event(body=body, format=HTML, formatted_body=html))
    assert words(message, ()) == read


LINK = '<a href="{}">{}</a>'
ALL_LINKS = {  # each text as long as an event can be
    "the same letter": ("a" * 30_000, LINK.format("b", "a") * 1_700),
    "the same address": ("a" * 30_000, LINK.format("a", "b") * 1_700),
    "parts of an address": ("x/" * 15_000, LINK.format("x/", "b") * 1_600),
    "dots": ("." * 30_000, LINK.format(".", "b") * 1_700),
    "dots and a letter": ("." * 30_000 + "x", LINK.format("....", ".") * 1_500),
    "other addresses": ("a" * 30_000, "".join(LINK.format(n, "a") for n in range(1_500))),
    "words and words": ("a b " * 7_500, LINK.format("c", "a b") * 1_500),
    "no words": ("a" * 30_000, LINK.format("b", "") * 1_700),
    "long words": ("ab" * 15_000, LINK.format("b", "ab" * 14_000)),
    "tags within": ("a" * 30_000, ("<b>" + LINK.format("b", "a") + "</b>") * 1_200),
}


@pytest.mark.parametrize(("body", "html"), ALL_LINKS.values(), ids=ALL_LINKS)
def test_a_message_of_links_alone_holds_up_nobody(body: str, html: str) -> None:
    """Of 65 kB took 4 to 60 s, in which nobody was answered."""
    began = process_time()
    message = parse_message("!r:x", event(body=body, format=HTML, formatted_body=html))
    assert process_time() - began < 2
    assert re.sub(r" \([^()]*\)", "", words(message, ())) == body


@pytest.mark.parametrize(
    "html",
    [
        "<![<![", "<!['a'", "<![x[", "<![1[a]]>", "<![ foo [", '<!["', "<![&", "<![a<b", "<![=]",
        "<![-", "<![é[", "<![)", "<![>", "<![if", "<![CDATA[a]]>", "<!DOCTYPE a [<!X", "&#x110000;",
        "&#" + "9" * 5000, '<a href="&#' + "9" * 5000,
    ],
)  # fmt: skip
def test_a_formatted_body_that_is_no_html_loses_no_word(html: str) -> None:
    message = parse_message("!r:x", event(body="here", format=HTML, formatted_body=html))
    assert words(message, ()) == "here"


@pytest.mark.parametrize("value", ["", None, 7, [], "\ud800", "x" * 20_000])
async def test_a_key_is_asked_for_whatever_its_session_is_called(
    tmp_path: Path, value: object
) -> None:
    session = MatrixSession(homeserver="", user="@me:x", device="D", pickle_key="k", token="t")
    server = Homeserver("http://127.0.0.1:9")
    encryption = Encryption(session, tmp_path, server)
    content = {"algorithm": MEGOLM, "session_id": value, "sender_key": "b", "device_id": "c"}
    raw = {"type": "m.room.encrypted", "event_id": "$1", "sender": "@a:x", "origin_server_ts": 1}
    raw |= {"content": {**content, "ciphertext": "d"}}
    with pytest.raises(HomeserverAway):  # all that goes wrong
        await encryption.ask_for_key("!r:x", raw)
    encryption.close()
    await server.close()


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("Voltaire, look", "look"),
        ("@Voltaire: look", "look"),
        ("voltaire look", "look"),
        ("@v:x look", "look"),
        ("Voltaire", ""),
        ("Voltaires look", "Voltaires look"),
        ("Voltaire's look", "Voltaire's look"),
        ("Voltaire-fan look", "Voltaire-fan look"),
        ("@v:x.org look", "@v:x.org look"),
        ("@v:xy look", "@v:xy look"),
        ("look, Voltaire", "look, Voltaire"),
    ],
)
def test_a_longer_word_is_not_the_bots_name(body: str, read: str) -> None:
    message = parse_message("!r:x", event(body=body))
    assert words(message, ("@v:x", "Voltaire")) == read
    if "Voltaire" in body and not body.startswith("look"):
        assert message.mentions("@v:x", "Voltaire") == (read != body)


def test_an_answer_in_a_thread_is_one_unless_it_says_otherwise() -> None:
    relation: dict[str, Any] = {
        "rel_type": "m.thread",
        "event_id": "$0",
        "m.in_reply_to": {"event_id": "$1"},
    }
    assert parse_message("!r:x", event(**{"m.relates_to": relation})).answers == "$1"
    relation["is_falling_back"] = True
    assert parse_message("!r:x", event(**{"m.relates_to": relation})).answers == ""


MESSAGES = [
    "/home is 98 % full, what can I delete?",
    "/etc/hosts what is it?",
    "/home/olga/notes.txt: shorten it",
    "/var, /tmp and /home: which is the largest?",
    "/tmp\nis full",
    "/unknown_command with words",
    "/status.txt is empty",
    "!important: buy milk",
    "/дом is full",
    "/ is full",
]


async def test_a_text_that_begins_with_a_path_is_no_command(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        for text in ("/help", "/unknown_command", "!help"):
            await olga.say(room, text)
            assert "/status" in (await olga.next()).body and not run.model.requests
        for text in MESSAGES:
            await olga.say(room, text)
            await olga.next()
            assert run.model.requests[-1].messages[-1].text.endswith(f"\n{text}")


POLL = {
    "org.matrix.msc1767.text": "When?\n1. Monday\n2. Friday",
    "org.matrix.msc3381.poll.start": {"question": {}, "answers": []},
}
UNREAD = "[a message that cannot be read here]"
OTHER_KINDS: list[tuple[str, dict[str, Any], str]] = [
    ("org.matrix.msc3381.poll.start", POLL, "they: When? 1. Monday 2. Friday"),
    ("m.sticker", {"body": "a cat", "url": "mxc://x/1", "info": {}}, "they: a cat"),
    ("m.poll.start", {"m.poll": {}}, UNREAD),
    ("m.call.invite", {"call_id": "1", "lifetime": 1, "version": 1, "offer": {}}, UNREAD),
]


async def test_the_post_that_is_answered_is_told_whole(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    post = "A long post. " * 200
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        earlier = await olga.say(room, post)
        await olga.next()
        await olga.reply(room, earlier, "what is this?")
        await soon(lambda: "what is this?" in said(run))
        assert f"they: {post.strip()}" in said(run)
        await olga.next()
        for kind, content, line in OTHER_KINDS:
            run.model.requests.clear()
            earlier = await olga.send(room, kind, content)
            await olga.reply(room, earlier, "what is this?")
            await soon(lambda: run.model.requests)
            assert f"reply to: {line}" in said(run)
            await olga.next()


async def test_a_changed_answer_still_answers_and_stays_in_its_thread(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    async def change(asked: str, thread: str, text: str = "what is this?") -> None:
        run.model.requests.clear()
        await olga.say(
            room,
            f"* {text}",
            **{
                "m.new_content": {"msgtype": "m.text", "body": text},
                "m.relates_to": {"rel_type": "m.replace", "event_id": asked},
            },
        )
        await soon(lambda: run.model.requests)
        assert "reply to: they: The boiler is a Vaillant." in said(run)
        told = (await olga.next()).content.get("m.relates_to") or {}
        assert (told.get("rel_type"), told.get("event_id", "")) == (
            "m.thread" if thread else None,
            thread,
        )

    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        earlier = await olga.say(room, "The boiler is a Vaillant.")
        await olga.next()
        asked = []
        for thread in ("", earlier):
            relation = {"rel_type": "m.thread", "event_id": thread} if thread else {}
            answer = {"m.relates_to": {**relation, "m.in_reply_to": {"event_id": earlier}}}
            asked.append(await olga.say(room, "what is ths?", **answer))
            await olga.next()
            await change(asked[-1], thread)
    async with scenario.open() as run:
        for event, thread in zip(asked, ("", earlier), strict=True):
            await change(event, thread, "what is that?")


async def test_what_is_answered_and_cannot_be_read_is_said(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        for missing in ("$nothing", "$", "$" + "x" * 43):
            run.model.requests.clear()
            await olga.reply(room, missing, "what is this?")
            await soon(lambda: run.model.requests)
            assert "reply to: [a message that cannot be read here]" in said(run)
            await olga.next()


async def test_a_reply_quotes_nothing_of_another_room(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        earlier = await olga.say(room, "The code is 4711.")
        await olga.next()
        other = await olga.room_with(scenario.account)
        await olga.reply(other, earlier, "what is this?")
        await soon(lambda: "what is this?" in said(run))
    assert "4711" not in run.model.requests[-1].messages[-1].text
