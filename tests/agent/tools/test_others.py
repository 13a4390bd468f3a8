"""Tools that work with what a chat's context offers beside the sandbox."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent.errors import ToolError
from agent.sandbox.limits import HostRepo
from agent.tools.bash import bash
from agent.tools.context import RecallMatch, ToolContext
from agent.tools.delegate import delegate
from agent.tools.files import read_file, write_file
from agent.tools.memory import recall, remember
from agent.tools.schedule import schedule
from agent.tools.search import grep
from agent.tools.send_file import send_file
from agent.tools.tool import Call, Output
from agent.tools.web import web_fetch
from agent.trust import Taint, asks
from agent.web.browser import Browser
from fakes.cases import cases
from fakes.sandbox_box import Box, opened, repository
from fakes.words import saying

KEY = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"


@dataclass
class Notebook:
    saved: list[tuple[str, str]] = field(default_factory=list)

    async def remember(self, note: str, source: str, stranger: str = "") -> str:
        self.saved.append((note, source))
        return "saved note 1"

    async def recall(self, query: str, limit: int) -> Sequence[RecallMatch]:
        found = [RecallMatch(note, "2026-11-20") for note, _ in self.saved if query in note]
        return found[:limit]


class Planner:
    async def schedule(
        self,
        when: str,
        task: str,
        kind: str,
        approve: Callable[..., Awaitable[None]],
        stranger: str = "",
        asked: str = "",
    ) -> tuple[str, str]:
        await approve("plan", scope="plan")
        return f"job 1: {kind or 'remind'} {task}, {when}", f"{task}, {when}"


async def _conclude(task: str, strangers: list[str]) -> str:
    strangers.append("a page")
    return f"done: {task}"


async def _allow(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
    assert asks(scope, touched=bool(touched)) == "never", (what, scope)


@pytest.fixture
def call(box: Box) -> Call:
    context = ToolContext(box.sandbox, notes=Notebook(), jobs=Planner(), delegate=_conclude)
    return Call("1", "turn-7", "cli", context, _allow)


async def test_notes_are_saved_and_found(call: Call) -> None:
    assert await remember.run(call, {"note": " Likes tea. "}) == Output(
        "saved note 1", shown="Noted: Likes tea."
    )
    assert await recall.run(call, {"query": "tea"}) == Output("2026-11-20 Likes tea.")
    assert await recall.run(call, {"query": "coffee"}) == Output("nothing found", found=False)
    assert call.context.notes == Notebook([("Likes tea.", "turn-7")])


async def test_who_downloads_without_network_is_told_how_pages_are_read(call: Call) -> None:
    call = replace(call, context=replace(call.context, browser=Browser("cli", cast("Any", None))))
    for command, told in (
        ("curl -s https://example.org/a | grep x | head -1", True),
        ("cd /tmp; wget -q http://example.org/a; true", True),
        ("curl -s http://localhost:1/; true", False),
        ("echo curl", False),
    ):
        output = await bash.run(call, {"command": command})
        assert ("web read" in output.text, output.found) == (told, not told)
    for used, arguments in (
        (grep, {"pattern": "x", "path": "https://example.org/search?q=x"}),
        (read_file, {"path": "https://example.org/a"}),
    ):
        with pytest.raises(ToolError, match="web search"):
            await used.run(call, arguments)


async def test_git_outside_of_a_repository_is_told_where_one_is(call: Call) -> None:
    made = "mkdir -p site notes; cd site; git init -q"
    assert (await bash.run(call, {"command": made})).ok
    told = await bash.run(call, {"command": "git status -s"})
    assert told.text.endswith("exit code: 128\nFolders with a repository: site.")
    assert "Folders" not in (await bash.run(call, {"command": "cd notes; cat x"})).text


async def test_what_asks_for_the_hardware_is_told_where_it_is_described(call: Call) -> None:
    for command in (
        "cat /sys/class/thermal/temp",
        "lscpu -e; ls /sys/devices/system/cpu",
        "dmidecode",
    ):
        told = (await bash.run(call, {"command": f"{command}; false"})).text
        assert told.endswith("cat /host.txt tells of it."), told
    for command in ("cat nothing", "echo /usr/include/sys/types.h; false", "cat sys/a ./sys/b"):
        assert "host.txt" not in (await bash.run(call, {"command": command})).text, command


async def test_files_that_differ_are_no_failure(call: Call) -> None:
    assert (await bash.run(call, {"command": "echo pear > a; echo plum > b"})).ok
    for command, ok in (
        ("diff a b", True),
        ("cmp a b", True),
        ("diff a b; false", False),
        ("diff a nothing", False),
    ):
        output = await bash.run(call, {"command": command})
        assert (output.ok, output.text.endswith("exit code: 1 (they differ)")) == (ok, ok), command


async def test_of_a_script_that_is_not_there_it_is_told_what_makes_it(call: Call) -> None:
    for command in ("python3 fib.py", "python3 /workspace/fib.py"):
        told = (await bash.run(call, {"command": command})).text
        assert told.endswith("There is no fib.py: where it is to be made, write_file makes it.")
    assert "write_file" not in (await bash.run(call, {"command": "cat fib.py"})).text


async def test_an_error_of_the_calculator_is_a_failure_though_it_ends_with_0(call: Call) -> None:
    for printed, ok in (
        ("(standard_in) 1: syntax error\n(standard_in) 2: illegal character: %", False),
        ("(standard_in) 1: syntax error\n42", True),
        ("42", True),
    ):
        output = await bash.run(call, {"command": f"echo '{printed}'"})
        assert (output.text, output.ok) == (printed, ok)


async def test_columns_of_a_csv_file_that_awk_splits_at_blanks_are_no_result(call: Call) -> None:
    assert (await bash.run(call, {"command": "printf 'a,1\\nb,2\\n' > c.csv"})).ok
    by_comma = r"awk -F, '{s += $2} END {print s}' c.csv"
    for command, told in (
        ("awk '{s += $2} END {print s}' c.csv", "split by awk -F, or sort -t,"),
        ("awk '{print $2}' c.csv | awk '{s += $1} END {print s}'", "split by awk -F, or sort -t,"),
        (by_comma, "3"),
        (by_comma.replace("-F,", "-v FS=,"), "3"),
        ("awk 'BEGIN {FS = \",\"} {s += $2} END {print s}' c.csv", "3"),
        ("awk 'NR > 1 {n++} END {print n + 2}' c.csv", "3"),
        ("tr , ' ' < c.csv | awk '{s += $2} END {print s}'", "3"),
        ("sort -k2nr c.csv", "split by awk -F, or sort -t,"),
        ("sort -n -k 2 c.csv | head -1", "split by awk -F, or sort -t,"),
        ("sort -t, -k2n c.csv | tail -1 | cut -d, -f2 | sed 's/2/3/'", "3"),
        ("sort -k1 c.csv | wc -l | sed 's/2/3/'", "3"),
    ):
        output = await bash.run(call, {"command": command})
        assert (output.text.endswith(told), output.found) == (True, told == "3"), command


async def test_plans(call: Call) -> None:
    given = {"when": "at 8", "task": "water"}
    assert await schedule.run(call, given) == Output(
        "job 1: remind water, at 8", shown="water, at 8"
    )
    given = {"when": "at 8", "task": "look", "kind": "task"}
    assert await schedule.run(call, given) == Output("job 1: task look, at 8", shown="look, at 8")


async def test_a_helper_concludes(call: Call) -> None:
    assert (await delegate.run(call, {"task": "read all"})).text == "done: read all"
    assert call.strangers == ["a page"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (remember, {"note": "x"}, "There is no memory in this chat."),
        (recall, {"query": "x"}, "There is no memory in this chat."),
        (schedule, {"when": "x", "task": "y"}, "Nothing can be scheduled in this chat."),
        (delegate, {"task": "x"}, "Nothing can be delegated from here."),
        (
            web_fetch,
            {"url": "https://x"},
            "There is no network; the owner can allow it in the configuration.",
        ),
    ],
)
async def test_what_is_not_there_is_said(
    box: Box, tool: object, arguments: dict[str, str], said: str
) -> None:
    bare = Call("1", "turn", "cli", ToolContext(box.sandbox), _allow)
    with pytest.raises(ToolError) as caught:
        await tool.run(bare, arguments)  # type: ignore[attr-defined]
    assert str(caught.value) == said


@pytest.fixture
async def with_repo(tmp_path: Path) -> AsyncIterator[Box]:
    repos = [HostRepo("site", repository(tmp_path / "site", {"a.txt": "one\n"}))]
    async with opened(tmp_path / "state", repos=repos) as sandboxes:
        yield Box(await sandboxes.of("cli"))


async def test_a_file_of_the_workspace_is_sent(with_repo: Box) -> None:
    await with_repo.use(write_file, path="out/report.txt", content="all well")
    assert await with_repo.text(send_file, path="out/report.txt", caption="here") == (
        "sent out/report.txt, 8 bytes"
    )
    assert (with_repo.sent, with_repo.asked) == ([("report.txt", b"all well", "here")], [])


@pytest.mark.parametrize("path", ["/host.txt", "/./host.txt", "/x/../host.txt"])
async def test_the_report_of_the_machine_is_sent(with_repo: Box, path: str) -> None:
    assert await with_repo.text(send_file, path=path) == "sent host.txt, 11 bytes"
    assert with_repo.sent == [("host.txt", b"name: test\n", "")]


async def test_files_that_a_pattern_names_are_sent_as_one(with_repo: Box) -> None:
    for name in ("b.png", "a.png", "notes.txt", "sub/c.png"):
        await with_repo.use(write_file, path=f"out/{name}", content=name)
    assert await with_repo.text(send_file, path="out/*.png", caption="both") == (
        "sent out/a.png, out/b.png, 10 bytes"
    )
    assert with_repo.albums == [([("a.png", b"a.png"), ("b.png", b"b.png")], "both")]
    await with_repo.use(send_file, path="out/n*.txt")
    assert with_repo.sent == [("notes.txt", b"notes.txt", "")]
    none = await with_repo.error(send_file, path="out/*.pdf")
    assert none == "There is no file out/*.pdf."
    for number in range(11):
        await with_repo.use(write_file, path=f"many/{number}.txt", content="x")
    many = await with_repo.error(send_file, path="many/*")
    assert many == saying("many/*", "11 files", "10 at most")
    await with_repo.use(write_file, path="out/[1].txt", content="its name")
    assert await with_repo.text(send_file, path="out/[1].txt") == "sent out/[1].txt, 8 bytes"


ODD_NAMES = {
    "annex\u202efdp.exe": "annexfdp.exe", "a\u2066b\u2069.txt": "ab.txt", "a\u200fb.txt": "ab.txt", "a\x1b[31mb.txt": "ab.txt", "a\x9bb.txt": "a.txt",
    "a\nb.txt": "a b.txt", "a\rb.txt": "a b.txt", "a\x07b.txt": "ab.txt", "a\ufeffb.txt": "ab.txt", "a\u2028b.txt": "a b.txt", "a\x7fb.txt": "ab.txt",
    "می‌خواهم.pdf": "می‌خواهم.pdf", "👨‍👩‍👧.txt": "👨‍👩‍👧.txt", "Übergabe (1).pdf": "Übergabe (1).pdf",
}  # fmt: skip


@cases(("name", "sent"), ODD_NAMES.items())
async def test_the_name_of_a_sent_file_reads_as_it_is(box: Box, name: str, sent: str) -> None:
    (box.sandbox.workspace / name).write_text("x")
    box.sent.clear()
    await box.use(send_file, path=name)
    assert [each[0] for each in box.sent] == [sent]


async def test_a_file_whose_name_is_no_text_is_sent(box: Box) -> None:
    (box.sandbox.workspace / os.fsdecode(b"a\xffb.txt")).write_text("x")
    await box.use(send_file, path="*b.txt")
    assert [each[0] for each in box.sent] == ["a?b.txt"]


async def test_a_file_of_a_repository_is_sent_when_the_owner_allows(with_repo: Box) -> None:
    await with_repo.use(send_file, path="/repos/site/a.txt")
    with_repo.allows = False
    assert await with_repo.error(send_file, path="/repos/site/a.txt") == "The owner said no."
    assert with_repo.sent == [("a.txt", b"one\n", "")]
    assert with_repo.asked == [("Send /repos/site/a.txt (4 bytes)", "send:site")] * 2


async def test_what_is_sent_is_what_was_allowed(with_repo: Box) -> None:
    """A job of the sandbox may write the file while the owner thinks."""
    await with_repo.use(write_file, path="out.txt", content=f"It is {KEY}.")

    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        assert (scope, KEY in what) == ("key", True)
        with (with_repo.sandbox.workspace / "out.txt").open("r+b") as file:
            file.write(b"Something else, and longer than what was shown before.")

    with_repo.approve = approve
    told = await with_repo.text(send_file, path="out.txt")
    assert with_repo.sent == [("out.txt", f"It is {KEY}.".encode(), "")]
    assert told == saying(f"{len(KEY) + 7} bytes")
    assert not [*with_repo.sandbox.workspace.parent.glob("[!w]*")]  # the copy has no name


def renamed(work: Path, site: Path) -> None:
    for words in ("nothing", f"It is {KEY}."):
        (work / "new").write_text(words)
        (work / "new").replace(work / "out.txt")


def overwritten(work: Path, site: Path) -> None:
    for words in ("nothing at all".ljust(60), f"It is {KEY}.".ljust(60)):
        with (work / "out.txt").open("r+") as file:
            file.write(words)


def emptied(work: Path, site: Path) -> None:
    (work / "out.txt").write_text("")
    (work / "out.txt").write_text(f"It is {KEY}.")


def grown(work: Path, site: Path) -> None:
    (work / "out.txt").write_text("begins " * 5000)
    with (work / "out.txt").open("a") as file:
        file.write(KEY)


def linked(work: Path, site: Path) -> None:
    for target in (site / "a.txt", work / "harmless"):
        (work / "link").unlink(missing_ok=True)
        (work / "link").symlink_to(target)
        (work / "link").replace(work / "out.txt")


def climbed(work: Path, site: Path) -> None:
    for target in ("../../../site/a.txt", "/repos/site/a.txt", "harmless"):
        (work / "link").unlink(missing_ok=True)
        (work / "link").symlink_to(target)
        (work / "link").replace(work / "out.txt")


def kinds(work: Path, site: Path) -> None:
    (work / "out.txt").unlink(missing_ok=True)
    os.mkfifo(work / "out.txt")
    (work / "out.txt").unlink()
    (work / "out.txt").mkdir()
    (work / "out.txt").rmdir()
    (work / "out.txt").write_text(f"It is {KEY}.")


CHANGES = (renamed, overwritten, emptied, grown, linked, climbed, kinds)
BY_DAY = ((renamed, "out.txt"), (overwritten, "out*.txt"), (climbed, "out.txt"))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param(change, path, marks=() if (change, path) in BY_DAY else pytest.mark.slow)
        for change in CHANGES
        for path in ("out.txt", "out*.txt")
    ],
)
async def test_whoever_writes_a_file_while_it_is_sent_sends_nothing_that_was_not_allowed(
    with_repo: Box, tmp_path: Path, change: Callable[[Path, Path], None], path: str
) -> None:
    work, over = with_repo.sandbox.workspace, threading.Event()
    for name in ("harmless", "out.txt"):
        (work / name).write_text("nothing")
    with_repo.allows = False

    def write() -> None:
        while not over.is_set():
            change(work, tmp_path / "site")

    writing = asyncio.create_task(asyncio.to_thread(write))
    try:
        for _ in range(40):
            with suppress(ToolError):  # refused, or gone
                await with_repo.text(send_file, path=path)
    finally:
        over.set()
        await writing
    albums = [content for album, _ in with_repo.albums for _, content in album]
    contents = [content for _, content, _ in with_repo.sent] + albums
    assert not [content for content in contents if KEY.encode() in content or content == b"one\n"]


async def test_a_file_that_grows_while_it_is_sent_stays_within_what_can_be_sent(
    with_repo: Box,
) -> None:
    out, over = with_repo.sandbox.workspace / "out.txt", threading.Event()
    out.write_text("x")
    with_repo.upload_limit = 1000

    def write() -> None:
        while not over.is_set():
            for size in (1, 1 << 20):
                os.truncate(out, size)

    writing = asyncio.create_task(asyncio.to_thread(write))
    try:
        for _ in range(100):
            with suppress(ToolError):  # too large, or cut
                await with_repo.text(send_file, path="out.txt")
    finally:
        over.set()
        await writing
    assert not [len(content) for _, content, _ in with_repo.sent if len(content) > 1000]


async def test_a_file_that_is_too_large_is_refused_before_it_is_copied(
    with_repo: Box, tmp_path: Path
) -> None:
    with_repo.upload_limit = 10
    await with_repo.use(write_file, path="out.txt", content="more than ten")
    with (tmp_path / "site" / "film.mkv").open("w") as film:
        film.truncate(1 << 42)
    for path, size in (("out.txt", "13"), ("/repos/site/film.mkv", "4,398,046,511,104")):
        error = await with_repo.error(send_file, path=path)
        assert error == saying(path, f"{size} bytes", "at most 10")
    assert (with_repo.sent, with_repo.asked) == ([], [])


async def test_what_cannot_be_sent(with_repo: Box) -> None:
    assert await with_repo.error(send_file, path="none.txt") == "There is no file none.txt."
    assert await with_repo.error(send_file, path=".") == "/workspace is a directory."
