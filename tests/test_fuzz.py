"""Every parser of foreign bytes: it gives a value, or its own error, and nothing else.

Seeded and short here; `make fuzz` runs the same for an hour with new examples.
"""

import asyncio
import io
import json
import os
import random
import struct
import tarfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.errors import AgentError, ToolError
from agent.leaks import LeakDetector
from agent.llm.openai.chunks import DONE, Chunks, Events, StreamTooLong
from agent.llm.openai.errors import error_of, error_of_answer
from agent.llm.openai.values import MOST, mapping
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.sandbox.git_index import UnguardedError, gitlinks
from agent.sandbox.gitdirs import is_harmless
from agent.sandbox.hosts import HostRefused
from agent.sandbox.output_buffer import decode_fields, truncate_middle, visible
from agent.sandbox.proxy import REQUEST_LINE, parse_request, server_name, tunnel_start
from agent.sandbox.workspace_taints import WorkspaceTaints
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.parser import parse
from agent.schedule.times.rule import dump, load, next_times
from agent.store.set_aside import update_key
from agent.store.transcript import SHORT, decoded_message
from agent.summary.commit_range import CommitRange
from agent.summary.git_facts import collect
from agent.tools.files import changed_lines, matching_text
from agent.tools.git import NEW_SUBMODULE, changed_files
from agent.web.fetch import parts_of, redirected
from agent.web.html_text import html_text
from backend.build import release
from backend.models.gguf_header import NotAModel, read_open
from bot import restore
from bot import settings as configuration
from bot.approval_question import code, excerpt, fenced
from bot.restore import BackupError
from bot.telegram.markdown import render
from bot.telegram.styled import entities
from bot.telegram.update_gate import as_json, update_number
from bot.texts import Texts
from fakes.hostile_streams import chunks, events

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))  # for all targets together
EXAMPLES = 60
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
    assert all(len(line.splitlines()) == 1 for line in shown)


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
    """Whatever passes as harmless names no program."""
    folder = Path(os.environ["FUZZ_FOLDER"])
    (folder / "config").write_bytes(raw)
    fd = os.open(folder, os.O_RDONLY)
    try:
        harmless = is_harmless(fd, {"config": False})
    finally:
        os.close(fd)
    words = (b"fsmonitor", b"hookspath", b"sshcommand", b"editor", b"::", b"include")
    assert not harmless or not any(word in raw.lower() for word in words)


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
    shown = fenced(excerpt(Texts(), text))
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
        release.unpack(folder / "server", folder / "fresh")
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
ORIGINS = b'{"next": 2, "open": [{"source": "file a", "at": 1.0, "number": 1}], "cleared": []}'
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

TARGETS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    "updates": (JSON, updates),
    "stream": (mutated_bytes(sample_stream(), b"data: [DONE]\n\n"), stream),
    "refused answer": (mutated_bytes(b'{"error": {"code": 400, "message": "x"}}'), refused_answer),
    "calls from text": (mutated_text(CALL), calls_from_text),
    "html": (mutated_text(PAGE), html),
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
    run = settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not SECONDS,
        database=None,
        suppress_health_check=list(HealthCheck),
    )(given(values)(check))
    end = time.monotonic() + SECONDS / len(TARGETS)
    run()
    while time.monotonic() < end:
        run()
