"""Every parser of foreign bytes: it gives a value, or its own error, and nothing else.

Of each, FUZZ_ROUNDS rounds of 60 examples, each of a seed of its own; with FUZZ_SECONDS (for all targets
together) as many rounds as fit. A failure shows the input, and with the seed, FUZZ_SEED, it comes again.
Seeds are the same every time, so that the answer is that of the code and not of the day; `make fuzz` looks for
an hour where nobody has looked, from the time as its seed.
"""

import asyncio
import hashlib
import hmac
import io
import itertools
import json
import os
import random
import struct
import tarfile
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from mcp import types
from pydantic import ValidationError

from agent.bounded_json import parsed_json
from agent.documents import extraction, reading
from agent.errors import AgentError, ToolError, UsageError
from agent.leaks import LeakDetector
from agent.llm.openai.chunks import DONE, Chunks, Events, StreamTooLong
from agent.llm.openai.client import error_of, error_of_answer
from agent.llm.openai.values import MOST, mapping
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.mcp.config import BrokenServer
from agent.mcp.connection import Screen, descriptor
from agent.mcp.connection import parse_messages as server_messages
from agent.mcp.oauth import SignIn
from agent.mcp.tools import Pins, arguments, from_json, question, result_of, tools_of
from agent.messages import ToolCall
from agent.pictures import facts_of
from agent.plan import WrongPlan, plan_lines, with_done, with_steps
from agent.sandbox.files import WorkspaceTaints
from agent.sandbox.gitdirs import UnguardedError, gitlinks, is_harmless
from agent.sandbox.hosts import HostRefused
from agent.sandbox.output_buffer import decode_fields, truncate_middle, visible
from agent.sandbox.proxy import REQUEST_LINE, parse_request, server_name, tunnel_start
from agent.schedule.due_times import next_times
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.parser import parse
from agent.schedule.times.rule import dump, load
from agent.shell import registry as programs
from agent.shell.broker import MOST_ARGUMENTS, ClientGone, read_frame
from agent.shell.command import HelpAsked
from agent.skills import GUIDE, PINS, SkillError, SkillShelf, read_skill
from agent.store.chats import decoded_plan
from agent.store.set_aside import update_key
from agent.store.transcript import SHORT, decoded_message
from agent.summary.git_facts import CommitRange, collect
from agent.tools.files import changed_lines, matching_text
from agent.tools.git import NEW_SUBMODULE, changed_files
from agent.tools.registry import known
from agent.turn.step import sound_json
from agent.web.browser import addresses_in, canonical
from agent.web.fetch import parts_of, redirected
from agent.web.html_text import html_text
from agent.web.html_text import markdown as main_part
from agent.web.search import SearchRefused, page_of
from backend.build import release
from backend.models.gguf_header import NotAModel, read_open
from bot import restore
from bot import settings as configuration
from bot.approval_question import code, excerpt, fenced
from bot.attachments import from_json as stored_files
from bot.attachments import safe_name
from bot.channel import MessageRefused
from bot.intake import Quotation
from bot.matrix.channel import decrypted_file
from bot.matrix.incoming_message import incoming_message
from bot.matrix.incoming_message import parse_message as room_message
from bot.matrix.keyboards import chosen_button
from bot.matrix.live import PART_BYTES, message_content, split
from bot.matrix.rooms import JoinedRoom
from bot.matrix.sync import sent_at
from bot.page.access import SignInRefused, signed_fields
from bot.restore import BackupError
from bot.telegram.markdown import render
from bot.telegram.styled import entities
from bot.telegram.updates import as_json, update_number
from fakes.hostile_json import mutated
from fakes.hostile_streams import chunks, events
from fakes.mails import ugly

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1"))
SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
EXAMPLES = 60  # of a round
MOST_ROUNDS = 100_000
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TOOLS = json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8"))
KNOWN = KnownTools.of(TOOLS)


def mutated_bytes(*samples: bytes) -> st.SearchStrategy[bytes]:
    """Bytes of any kind, and samples with pieces replaced, repeated and cut off."""

    def mutate(sample: bytes, changes: Sequence[tuple[float, bytes, int]], cut: float) -> bytes:
        for place, piece, length in changes:
            at = int(place * len(sample))
            sample = sample[:at] + piece + sample[at + length :]
        return sample[: int(cut * len(sample)) + 1]

    change = st.tuples(st.floats(0, 1), st.binary(max_size=12), st.integers(-8, 20))
    ends = st.one_of(st.just(1.0), st.floats(0, 1))
    mutants = st.builds(mutate, st.sampled_from(samples), st.lists(change, max_size=6), ends)
    return st.one_of(st.binary(max_size=600), mutants)


def mutated_text(*samples: str) -> st.SearchStrategy[str]:
    """Text of any kind, and samples with pieces of each other in them."""
    words = sorted({word for sample in samples for word in sample.split()})
    mixed = st.lists(st.one_of(st.sampled_from(words), st.text(max_size=5)), max_size=12)
    raw = mutated_bytes(*(sample.encode() for sample in samples))
    return st.one_of(
        st.text(max_size=400), mixed.map(" ".join), raw.map(lambda b: b.decode("utf-8", "replace"))
    )


def mutated_json(*samples: Any) -> st.SearchStrategy[Any]:
    """The samples with fields missing, of other types, huge or negative."""
    chances = st.integers(0, 1 << 32).map(random.Random)
    return st.builds(mutated, st.sampled_from(samples), chances)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=8,
)


def updates(value: Any) -> None:
    number = update_number(value)
    assert number is None or 0 <= number < 1 << 63
    assert json.loads(as_json(value)) is not NotImplemented
    assert update_key("telegram", as_json(value)).startswith("telegram:")


def stream(raw: bytes) -> None:
    found, read = Chunks(), Events()
    try:
        for value in [*read.feed(raw[:40]), *read.feed(raw[40:]), *read.close()]:
            chunk = mapping({"done": True} if value == DONE else value)
            if "error" in chunk:
                assert str(error_of(500, chunk["error"])) is not None
            list(found.feed(chunk))
    except StreamTooLong:
        return
    last = found.completion(found.finish_reason or "cut", None)
    last.text.encode()
    counts = (last.prompt_tokens, last.cached_tokens, last.completion_tokens, last.draft_tokens)
    assert all(count is None or 0 <= count <= 2 * MOST for count in counts)


def refused_answer(raw: bytes) -> None:
    assert str(error_of_answer(500, raw)) is not None


def calls_from_text(text: str) -> None:
    parser = ToolCallParser(KNOWN)
    shown = "".join([parser.feed(text[:20]), parser.feed(text[20:]), parser.close()])
    assert shown.strip() == parser.visible
    for call in parser.calls:
        json.dumps(call.arguments, default=str).encode()


def html(text: str) -> None:
    html_text(text).encode("utf-8", "replace")


def main_text(text: str) -> None:
    main_part(text, "http://a.example/x").encode("utf-8", "replace")


def written_address(text: str) -> None:
    """What was written is found as it will be asked for."""
    found = canonical(text)
    assert canonical(found) == found
    assert all(canonical(each) == each for each in addresses_in(f"{text} ({found}).") if each)


def search_answer(found: Any) -> None:
    try:
        page = page_of(found)
    except SearchRefused:
        return
    assert all("\n" not in line for each in page.results for line in each.model_dump().values())


def document(given: tuple[str, bytes]) -> None:
    """Whatever the program in the sandbox prints of it, it prints an end."""
    suffix, raw = given
    path = Path(os.environ["FUZZ_FOLDER"]) / f"file.{suffix}"
    path.write_bytes(raw)
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())) as printed:
        extraction.main(str(path), "10")
    with suppress(reading.UnreadableDocument):
        reading.parsed(printed.buffer.getvalue())
    last = printed.buffer.getvalue().split(b"\n")[-2]
    assert {"error", "unit"} & set(json.loads(last))


def printed_passages(raw: bytes) -> None:
    with suppress(reading.UnreadableDocument):
        reading.parsed(raw)


def message_of_server(raw: bytes) -> None:
    screen = Screen()
    with suppress(BrokenServer):
        for message in server_messages(raw):
            screen.look(message)


def tools_of_server(said: Any) -> None:
    """What the library lets through is shown whole, on lines of its own, and can be called or not."""
    try:
        tools, _ = tools_of("tea", [descriptor(tool) for tool in said["tools"]])
    except (KeyError, TypeError, ToolError):
        return
    for tool in tools:
        assert len(tool.line.splitlines()) == 1
        assert visible(tool.help) == tool.help
        question("program", Pins(), [tool]).encode("utf-8", "replace")
        for words in (["text=x", "n=1"], [f"{name}=7" for name in tool.parameters], ["more={}"]):
            with suppress(UsageError):
                json.dumps(arguments(tool, words))
        with suppress(UsageError):
            from_json(tool, '{"text": [1]}')


def result_of_server(said: Any) -> None:
    try:
        read = types.CallToolResult.model_validate(said, by_name=False)
    except ValidationError:
        return
    raw = read.model_dump(by_alias=True, mode="json", exclude_none=True)
    found = result_of(raw, "tea", ["secret value"])
    assert "secret value" not in found.text
    assert all(safe_name(name) == name for name in found.files)


def skill(raw: bytes) -> None:
    state = Path(os.environ["FUZZ_FOLDER"])
    (folder := state / "skills").mkdir(exist_ok=True)
    (folder / GUIDE).write_bytes(raw)
    with suppress(SkillError):
        assert len(read_skill(folder).description.splitlines()) == 1
    (folder / PINS).write_bytes(raw)
    assert all(isinstance(pin.name, str) for pin in SkillShelf(state).pins())


def plan(text: str) -> None:
    """A step is a line, whatever it says."""
    try:
        steps = with_steps((), text.split("\n"))
        steps = with_done(steps, len(text) % 23)
    except WrongPlan:
        return
    assert all(len(line.splitlines()) == 1 for line in plan_lines(steps))


def stored_plan(text: str) -> None:
    with suppress(ValueError):
        plan_lines(decoded_plan(text))


def command_frames(raw: bytes) -> None:
    """What a client of the sandbox sends, and the arguments in it."""

    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(raw)
        reader.feed_eof()
        while True:
            _, content = await read_frame(reader, MOST_ARGUMENTS)
            program, _, *words = [*content.decode("utf-8", "replace").split("\0"), "", ""]
            for command in programs.commands(program).values():
                with suppress(UsageError, HelpAsked):
                    command.check(words)

    with suppress(ClientGone):
        asyncio.run(read())


def tool_arguments(value: Any) -> None:
    sound = sound_json(ToolCall("1", "bash", json.dumps(value)))
    for tool in known().values():
        with suppress(ToolError):
            tool.check(json.loads(sound or "{}"))


def room_event(event: Any) -> None:
    """Also the fields that are looked at once it is known to be a message."""
    room = JoinedRoom("!r:x")
    room.change(event)
    assert 0 <= sent_at(event) <= time.time() * 1000 + 1
    try:
        message = room_message(room.id, event)
        quote = Quotation("eve", message.body)
        row = incoming_message(
            message, sender="e", me=("@b:x", "bot"), quote=quote, origin="person"
        )
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return  # as Timeline takes them
    message.mentions("@b:x", "bot")
    chosen_button(message.body, [("Allow once", "ok"), ("Deny", "no")])
    assert message.command is None or message.command[0]
    assert all(safe_name(file.name) == file.name for file in stored_files(row.body))


def formatted(text: str) -> None:
    json.dumps(message_content(text)).encode()
    parts = split(text)
    assert all(len(part.encode("utf-8", "replace")) <= PART_BYTES for part in parts)


def sealed_file(keys: Any) -> None:
    with suppress(MessageRefused):
        decrypted_file(b"x" * 32, keys)


def file_name(text: str) -> None:
    name = safe_name(text)
    assert safe_name(name) == name
    assert "/" not in name and not name.startswith(".")


def gguf(raw: bytes) -> None:
    try:
        read_open(io.BytesIO(raw), len(raw), "x")
    except NotAModel:
        return


def proxy_request(raw: bytes) -> None:
    try:
        host, port, _ = parse_request(raw)
    except HostRefused:
        return
    assert host
    assert 0 < port < 65_536


def address(text: str) -> None:
    try:
        parts_of(text)
    except ToolError:
        return


def redirect(text: str) -> None:
    with suppress(ToolError):
        parts_of(redirected("http://a.example/x", text))


def edit(text: str) -> None:
    """What a change shows holds the new text, and each of its lines is one."""
    middle = len(text) // 2
    old, new = text[middle : middle + 30], text[-20:]
    try:
        at, old, new = matching_text(text, old, new, "x")
    except ToolError as error:
        assert len(str(error)) < 3000
        return
    shown = list(changed_lines(text, at, old, new))
    assert not any("\n" in line for line in shown)


def config(raw: bytes) -> None:
    path = Path(os.environ["FUZZ_CONFIG"])
    path.write_bytes(raw)
    try:
        configuration.load(path)
    except configuration.ConfigurationError as error:
        assert "\n" not in str(error).strip()


def facts_of_git(raw: bytes) -> None:
    async def git(_: Sequence[str]) -> bytes:
        return raw

    try:
        asyncio.run(collect(git, "", CommitRange("a", "b", "c")))
    except AgentError:
        return


def diff(raw: bytes) -> None:
    """No line of a diff, and no file of a status, is made by what a line or a name holds."""
    text = decode_fields(raw)
    assert text.count("\n") == raw.count(b"\n")
    assert text.count("\0") == raw.count(b"\0")
    assert len(text.splitlines()) <= raw.count(b"\n") + raw.count(b"\0") + 1
    NEW_SUBMODULE.search(text)
    truncate_middle(text, 100)
    assert all("\n" not in line for line in changed_files(text.split("\0")))


def times(text: str) -> None:
    try:
        rule = parse(text, NOW)
    except NotUnderstood:
        return
    assert load(dump(rule)) == rule
    next_times(rule, NOW, 3)


def stored_message(text: str) -> None:
    with suppress(ValueError):
        decoded_message("tool", "", text)
    with suppress(ValueError):
        decoded_message("user", *SHORT.validate_json(text))


def git_index(raw: bytes) -> None:
    with suppress(*NO_INDEX):
        for path in gitlinks(raw, Path("/nonexistent")):
            assert ".." not in path.split("/")


def git_settings(raw: bytes) -> None:
    """Whatever passes as harmless sets nothing that names a program, and no transport of its own."""
    folder = Path(os.environ["FUZZ_FOLDER"])
    (folder / "config").write_bytes(raw)
    fd = os.open(folder, os.O_RDONLY)
    try:
        harmless = is_harmless(fd, {"config": False})
    finally:
        os.close(fd)
    keys = b"\n".join(line.partition(b"=")[0] for line in raw.lower().splitlines())
    words = (b"fsmonitor", b"hookspath", b"sshcommand", b"editor", b"include")
    assert not harmless or (b"::" not in raw and not any(word in keys for word in words))


def tls_hello(raw: bytes) -> None:
    with suppress(HostRefused):
        server_name(raw)


def tunnel(raw: bytes) -> None:
    async def start() -> bytes:
        reader = asyncio.StreamReader()
        reader.feed_data(raw)
        reader.feed_eof()
        return await tunnel_start(reader, "a.example", 443)

    with suppress(HostRefused):
        passed = asyncio.run(start())
        assert not REQUEST_LINE.match(passed) or b"\r\nHost: a.example:443\r\n" in passed


def markdown(text: str) -> None:
    styled = render(text)
    for span in styled.spans:
        assert 0 <= span.start < span.end <= len(styled.text)
    entities(styled)


def approval(text: str) -> None:
    """Nothing of a step is unseen in its question, and nothing ends the block in which it stands."""
    shown = fenced(excerpt(text))
    fence = shown.partition("\n")[0]
    assert shown.count(fence) == 2
    assert visible(shown) == shown
    code(text)


def leaks(text: str) -> None:
    found = DETECTOR.find(text)
    assert (found is not None and found.secret) or SECRET not in text
    feed = DETECTOR.stream()
    told = feed.feed(text[:20]) + feed.feed(text[20:]) + feed.close()
    assert SECRET not in told


def origins(raw: bytes) -> None:
    """What cannot be read counts as a stranger's."""
    path = Path(os.environ["FUZZ_FOLDER"]) / "strangers.json"
    path.write_bytes(raw)
    record = WorkspaceTaints(path)
    for taint in record.open():
        assert isinstance(taint.source, str)
    record.add("page http://a.example/")
    assert "page http://a.example/" in [taint.source for taint in record.open()]


def backup_archive(raw: bytes) -> None:
    folder = Path(os.environ["FUZZ_FOLDER"])
    (folder / "backup").write_bytes(raw)
    with suppress(BackupError):
        restore.unpack(folder / "backup", folder / "restored")
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]


def server_archive(raw: bytes) -> None:
    folder = Path(os.environ["FUZZ_FOLDER"])
    (folder / "server").write_bytes(raw)
    with suppress(release.CannotGet):
        release.unpack([folder / "server"], folder / "fresh")
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]


def sample_stream() -> bytes:
    return events(chunks(random.Random(4)))


def archive(names: Sequence[str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=0) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 2
            tar.addfile(member, io.BytesIO(b"{}"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "manifest.json"
        tar.addfile(link)
    return made.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return made.getvalue()


def packed(main: str, *samples: bytes, **others: bytes) -> st.SearchStrategy[bytes]:
    """An archive of which one file is mutated."""
    names = {name.replace("_", "/", 1).replace("_", "."): raw for name, raw in others.items()}
    return mutated_bytes(*samples).map(lambda raw: zipped({**names, main: raw}))


WORD = b'<w:document xmlns:w="w"><w:body><w:p><w:pPr><w:pStyle w:val="H1"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>b</w:t><w:tab/></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>'
STYLES = b'<w:styles xmlns:w="w"><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style></w:styles>'
ODT = b'<o xmlns:t="t"><t:h t:outline-level="2">a</t:h><t:p>b<t:s/>c</t:p><t:table t:name="x"><t:table-row><t:table-cell><t:p>1</t:p></t:table-cell></t:table-row></t:table></o>'
CONTAINER = b'<c><rootfiles><rootfile full-path="a/b.opf"/></rootfiles></c>'
PACKAGE = b'<p><manifest><item id="i" href="../a/c.html"/></manifest><spine><itemref idref="i"/></spine></p>'
DOCUMENTS = st.one_of(
    st.tuples(st.just("docx"), packed("word/document.xml", WORD, word_styles_xml=STYLES)),
    st.tuples(st.just("docx"), packed("word/styles.xml", STYLES, word_document_xml=WORD)),
    st.tuples(st.just("odt"), packed("content.xml", ODT, mimetype=b"application/vnd.oasis.opendocument.text")),
    st.tuples(st.just("epub"), packed("a/b.opf", PACKAGE, **{"META-INF_container_xml": CONTAINER, "a_c_html": b"<h1>x</h1>y"}, mimetype=b"application/epub+zip")),
    st.tuples(st.just("epub"), mutated_bytes(zipped({"word/document.xml": WORD}))),
    st.tuples(st.just("eml"), mutated_bytes(*(raw for raw, _, _ in ugly().values() if len(raw) < 9000))),
    st.tuples(st.sampled_from(["md", "csv", "html", "txt", "xhtml"]), mutated_bytes(b"# a\n\nb, c\n```\n## d\n", b"\xff\xfea\0", b"<h1>x<p>y")),
)  # fmt: skip
PASSAGES = b'{"page": 1, "heading": "a", "text": "b"}\n{"unit": "page", "pages": 1, "notes": []}\n'
FOUND = {
    "results": [{"url": "https://a.example/x", "title": "a\nb", "content": None, "engine": "e", "publishedDate": "2026"}],
    "answers": ["4", {"answer": "5"}],
    "unresponsive_engines": [["g", "timeout"], "h"],
}  # fmt: skip
MESSAGE = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": []}}'
NOTICE = b'{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}'
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "a", "enum": ["x", 1]},
        "n": {"type": ["integer", "null"], "minimum": 0, "default": 3},
        "more": {"$ref": "#/$defs/m/properties/o"},
        "list": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"const": 7}]}},
    },
    "required": ["text"],
    "additionalProperties": False,
    "$defs": {"m": {"properties": {"o": {"type": "object"}}}},
}
DESCRIBED = {
    "tools": [
        {"name": "say", "title": "t", "description": "d\u202e", "inputSchema": SCHEMA, "annotations": {"destructiveHint": True}}
    ]
}  # fmt: skip
RESULT = {
    "content": [
        {"type": "text", "text": "a secret value\x1b[2J"},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {"uri": "note://1", "text": "b", "mimeType": "text/plain"},
        },
        {
            "type": "resource",
            "resource": {"uri": "note://2", "blob": "eA==", "mimeType": "../../x"},
        },
        {"type": "resource_link", "uri": "note://3", "name": "n"},
    ],
    "structuredContent": {"a": 1},
    "isError": False,
}
SKILL = b"---\nname: make-tea\ndescription: >\n  How tea\n  is made.\nlicense: 'MIT'\n---\nBoil.\n"
PINNED = b'[{"name": "a", "description": "b", "source": "/x", "sha256": "0"}]'
FRAME = b"C\0\0\0\x1eweb\0\0search\0--page\0002\0a b\0--json"
FRAMES = (
    FRAME,
    b"C\0\0\0\x13docs\0\0show\0a\0--page=x",
    b"C\0\0\0\x0bplan\0\0done\0\xb2I\0\0\0\1x",
)
GIVEN = {"command": "ls", "path": "a", "content": "b", "old": "c", "new": "d", "pattern": "e", "seconds": 3, "when": "tomorrow", "task": "f", "url": "http://a/", "paths": ["g"], "note": "h"}  # fmt: skip
IN_ROOM = {
    "event_id": "$1",
    "sender": "@e:x",
    "origin_server_ts": 1_790_000_000_000,
    "room_id": "!r:x",
}
SEALED = {"url": "mxc://x/y", "key": {"k": "a" * 43, "alg": "A256CTR"}, "iv": "b" * 22, "hashes": {"sha256": "c" * 43}, "v": "v2"}  # fmt: skip


def of_room(kind: str, **content: Any) -> dict[str, Any]:
    """With `state_key` a state event."""
    state = {key: content.pop(key) for key in ("state_key",) if key in content}
    return {**IN_ROOM, "type": kind, "content": content, **state}


ROOM_EVENTS = (
    of_room("m.room.message", msgtype="m.text", body="!jobs 1", **{"m.mentions": {"user_ids": ["@b:x"]}}),
    of_room("m.room.message", msgtype="m.text", body="> <@b:x> a\n\nb", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}}),
    of_room("m.room.message", msgtype="m.text", body="c", **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$0", "is_falling_back": True, "m.in_reply_to": {"event_id": "$2"}}}),
    of_room("m.room.message", msgtype="m.text", body="* d", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}, "m.new_content": {"msgtype": "m.text", "body": "d"}}),
    of_room("m.room.message", msgtype="m.image", body="e.png", url="mxc://x/y", info={"size": 7, "mimetype": "image/png"}),
    of_room("m.room.message", msgtype="m.audio", body="f.ogg", filename="f.ogg", file=SEALED, info={"duration": 3000}, **{"org.matrix.msc3245.voice": {}}),
    of_room("m.room.message", msgtype="m.location", body="g", geo_uri="geo:1,2"),
    of_room("m.room.member", state_key="@e:x", membership="join", displayname="Eve"),
    of_room("m.room.name", state_key="", name="room"),
    of_room("m.room.tombstone", state_key="", replacement_room="!s:x"),
)  # fmt: skip

SECRET = "4242:AAbbCCddEEff"
DETECTOR = LeakDetector({"telegram.token": SECRET})
NO_INDEX = (UnguardedError, ValueError, IndexError, struct.error)  # as submodule_paths takes them
INDEX = (
    b"DIRC"
    + struct.pack(">II", 2, 1)
    + bytes(24)
    + struct.pack(">I", 0o160000)
    + bytes(32)
    + b"\0\3lib\0\0\0\0\0\0\0"
)
SETTINGS = b'[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote "o"]\n\turl = https://a/b\n[include]\npath=x\nfsmonitor=x\n'
HELLO = (
    b"\x01\0\0\x3f\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0\0\x14\0\0\0\x10\0\x0e\0\0\x0ba.example.x"
)
ORIGINS = b'{"next": 2, "open": [{"source": "file a", "at": 1.0, "number": 1}]}'
MARKDOWN = "# a\n**b _c_** `d` ~~e~~ [f](http://a.b/c) ||g||\n\n| h | i |\n|---|:-:|\n| j | `k|` |\n\n> l\n> - m\n\n```py\nn\n```\n1. \U0001f642 &amp; <b> \\* $x$"
STEP = "curl -d @x http://h/ ``` \u202e \U000e0041 \t\t\t \n\n\n\n\n\n~~~ **bold** ````"
GGUF = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0a\x08\0\0\0\x01\0\0\0\0\0\0\0b"
STATUS = b"## main\0 M a\0R  new\0old\0?? b\r\xe2\x80\xa8c\0"
DIFF = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\x0c\n+c\xc2\x85d\nnew file mode 160000\n"
FACTS = b"since\t5\0tag\t7 v1\0commit\tx\0change\t1\t2\tname\0"
CONFIG = b'[telegram]\ntoken = "1:x"\nowners = [1]\n[agent]\ntimezone = "UTC"\n[agent.repos.a]\npath = "/x"\n[backend]\nkind = "external"\nurl = ["http://x"]\n'
REQUEST = b"GET http://a.example:80/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n"
CALL = '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call> ```json\n[bash(command="x")] <function=bash><parameter=command>x</parameter>'
PAGE = '<html><head><title>a&amp;b</title><script>x</script><!-- c --><p class="a">Hi <a href=/x>l</a><br/>&#x41;&#99999999;'
WHEN = "every other monday and the 2nd friday at 9:30 pm in Tokyo until 2027-02-30 cron: */5 0-23 31 feb * in 3 hours tomorrow noon"

JPEG = (
    b"\xff\xd8\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"
    b"\xff\xc0\0\x0b\x08\0\x14\0\x1e\1\1\x11\0"
)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x1e\0\0\0\x14\x08\2\0\0\0"
WEBP = b"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x1d\0\0\x13\0\0"
BOT_TOKEN = "1:x"


def picture(raw: bytes) -> None:
    with suppress(ToolError):
        facts_of(raw)


def answer_of_a_server(raw: bytes) -> None:
    with suppress(ValueError):
        parsed_json(raw)


def mini_app(user: str) -> None:
    """What Telegram signed, and what somebody else sends."""
    fields = {"auth_date": user[:12], "query_id": user[12:24], "user": user}
    lines = "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
    key = hmac.digest(b"WebAppData", BOT_TOKEN.encode(), hashlib.sha256)
    fields["hash"] = hmac.new(key, lines.encode(errors="replace"), hashlib.sha256).hexdigest()
    for sent in (urlencode(fields, errors="replace"), user):
        with suppress(SignInRefused):
            signed_fields(sent, BOT_TOKEN)


def answer_of_a_sign_in(text: str) -> None:
    async def given() -> None:
        waiting = SignIn("tea", "https://a.example/authorize?state=s")
        with suppress(ToolError):
            waiting.give(text)
        if waiting.answered.done():
            with suppress(ToolError):
                waiting.answered.result()

    asyncio.run(given())


TARGETS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    "updates": (JSON, updates),
    "stream": (mutated_bytes(sample_stream(), b"data: [DONE]\n\n"), stream),
    "refused answer": (mutated_bytes(b'{"error": {"code": 400, "message": "x"}}'), refused_answer),
    "calls from text": (mutated_text(CALL), calls_from_text),
    "html": (mutated_text(PAGE), html),
    "main part of a page": (mutated_text(PAGE + "<main><nav class=toc><h2>t</h2><pre>x</pre><table><td>y</main>"), main_text),
    "written address": (mutated_text("see https://a.example:443/x?q=%20#f (b.example/y)", "http://[::1]/\u00fc http://u:p@h/"), written_address),
    "search results": (mutated_json(FOUND), search_answer),
    "document": (DOCUMENTS, document),
    "passages of a document": (mutated_bytes(PASSAGES), printed_passages),
    "mcp message": (mutated_bytes(MESSAGE, NOTICE), message_of_server),
    "mcp tools": (mutated_json(DESCRIBED), tools_of_server),
    "mcp result": (mutated_json(RESULT), result_of_server),
    "skill": (mutated_bytes(SKILL, PINNED), skill),
    "plan": (mutated_text("boil water\nput tea in\n\u2028wait\x85"), plan),
    "stored plan": (mutated_text('[["boil", true], ["wait", false]]'), stored_plan),
    "frames of a command": (mutated_bytes(*FRAMES), command_frames),
    "tool arguments": (st.one_of(mutated_json(GIVEN), st.dictionaries(st.sampled_from(sorted(GIVEN)), JSON)), tool_arguments),
    "matrix event": (mutated_json(*ROOM_EVENTS), room_event),
    "matrix text": (mutated_text(MARKDOWN), formatted),
    "matrix file": (st.one_of(mutated_json(SEALED), JSON), sealed_file),
    "file name": (mutated_text("../../etc/passwd .bashrc\0 a\u202eb C:\\x " + "y" * 300), file_name),
    "gguf": (mutated_bytes(GGUF), gguf),
    "proxy request": (mutated_bytes(REQUEST, b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n"), proxy_request),
    "address": (mutated_text("http://user@a.example:80/x", "https://[::1]:99999/"), address),
    "redirect": (mutated_text("http://[::1]:9/../x?y#z", "//a@b:c/ \\d"), redirect),
    "edit": (mutated_text("def a():\n    return 1\r\n\n\tb = a()\u2028c\n" * 3), edit),
    "config": (mutated_bytes(CONFIG), config),
    "facts of git": (mutated_bytes(FACTS), facts_of_git),
    "diff": (mutated_bytes(DIFF, STATUS), diff),
    "times": (mutated_text(WHEN), times),
    "git index": (mutated_bytes(INDEX), git_index),
    "git settings": (mutated_bytes(SETTINGS), git_settings),
    "tls hello": (mutated_bytes(HELLO), tls_hello),
    "tunnel": (mutated_bytes(REQUEST, b"\x16\3\1\0\x43" + HELLO), tunnel),
    "markdown": (mutated_text(MARKDOWN), markdown),
    "approval": (mutated_text(STEP, "`" * 40 + "\n" * 2990), approval),
    "leaks": (mutated_text(f"the token {SECRET} here", f"{SECRET[:9]}\n{SECRET[9:]}"), leaks),
    "origins of files": (mutated_bytes(ORIGINS), origins),
    "backup": (mutated_bytes(archive(["manifest.json", "voltaire.db"])), backup_archive),
    "server archive": (mutated_bytes(archive(["a/llama-server", "a/lib.so"])), server_archive),
    "picture": (mutated_bytes(JPEG, PNG, WEBP), picture),
    "answer of a server": (mutated_bytes(b'{"data": [{"index": 0, "embedding": [0.5, -1e9]}]}'), answer_of_a_server),
    "mini app": (mutated_text('{"id": 7, "first_name": "A"}', "auth_date=1&user=%7B%22id%22%3A7%7D&hash=ab"), mini_app),
    "answer of a sign-in": (mutated_text("http://127.0.0.1:9/callback?code=c&state=s&iss=https://[::1]/", "code=c&error=e&state=s"), answer_of_a_sign_in),
    "stored message": (mutated_text('["text", "{\\"calls\\": [[\\"a\\", \\"b\\", \\"c\\"]]}"]'), stored_message),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_it_gives_a_value_or_its_own_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "around" / "folder").mkdir(parents=True)
    monkeypatch.setenv("FUZZ_FOLDER", str(folder))
    monkeypatch.setenv("FUZZ_CONFIG", str(tmp_path / "config.toml"))
    values, check = TARGETS[name]
    limits = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    end = time.monotonic() + SECONDS / len(TARGETS)
    for number in itertools.count():
        seed(SEED * MOST_ROUNDS + number)(limits(given(values)(check)))()
        if number + 1 >= ROUNDS and time.monotonic() >= end:
            return
