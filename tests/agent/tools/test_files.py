import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sandbox.limits import HostRepo
from agent.tools import files
from agent.tools.bash import bash
from agent.tools.files import LINE_CHARACTERS, edit_file, read_file, write_file
from agent.tools.search import grep, list_files
from agent.tools.send_file import send_file
from agent.tools.tool import Output
from fakes.cases import cases
from fakes.patience import SECONDS
from fakes.sandbox_box import Box, opened, repository
from fakes.words import saying


async def test_a_file_is_made_and_replaced(box: Box) -> None:
    assert await box.use(write_file, path="a/b.txt", content="größe\n") == Output(
        "created a/b.txt, 8 bytes"
    )
    assert await box.use(write_file, path="/workspace/a/b.txt", content="x") == Output(
        "replaced a/b.txt, 1 bytes"
    )
    assert await box.text(bash, command="cat a/b.txt; stat -c %a a/b.txt") == "x644"


@pytest.mark.parametrize(
    ("before", "after", "did"),
    [
        (None, "new\n", "created a.txt, 4 bytes"),
        ("", "new\n", "added to the end of a.txt, 4 bytes"),
        ("old\n", "old\nnew\n", "added to the end of a.txt, 8 bytes"),
        ("old", "old\nnew\n", "added to the end of a.txt, 8 bytes"),
    ],
)
async def test_what_is_added_begins_a_line(
    box: Box, before: str | None, after: str, did: str
) -> None:
    file = box.sandbox.workspace / "a.txt"
    if before is not None:
        file.write_text(before)
    assert await box.text(write_file, path="a.txt", content="new\n", append=True) == did
    assert file.read_text() == after


async def test_nothing_is_added_to_what_is_no_text(box: Box) -> None:
    await box.use(bash, command="mkdir dir; cp /bin/true bin")
    for path in ("bin", "dir"):
        assert path in await box.error(write_file, path=path, content="x", append=True)
    assert await box.text(bash, command="cmp bin /bin/true") == "(done, no output)"


async def test_permissions_stay(box: Box) -> None:
    await box.use(bash, command="echo old > run; chmod 755 run")
    await box.use(write_file, path="run", content="new")
    assert await box.text(bash, command="stat -c %a run; ls -A") == "755\nrun"


async def test_lines_of_a_file(box: Box) -> None:
    await box.use(bash, command="seq 10 > n")
    assert await box.text(read_file, path="n") == "1\n2\n3\n4\n5\n6\n7\n8\n9\n10"
    assert await box.text(read_file, path="n", first=3, last=4) == "3\n4"
    assert await box.text(read_file, path="n", first=9) == "9\n10"
    assert await box.text(read_file, path="n", first=9, last=99) == "9\n10"
    assert await box.error(read_file, path="n", first=11) == "n has only 10 lines."


async def test_a_long_file_tells_where_to_read_on(box: Box) -> None:
    box.output_bytes = 20
    await box.use(bash, command="seq 100 > n; yes | head -c 100 | tr -d '\\n' > wide; : > none")
    *lines, told = (await box.text(read_file, path="n")).splitlines()
    assert lines == list("123456789") and told == saying("1 to 9 of 100", "first=10]")
    assert await box.text(read_file, path="wide") == "y" * 20
    assert await box.text(read_file, path="none") == "none is empty."


async def test_what_is_no_text_is_said(box: Box) -> None:
    await box.use(
        bash,
        command="cp /bin/true bin; printf 'na\\357ve' > latin; mkfifo pipe; mkdir dir; "
        "truncate -s 9M huge; ln -s /etc/passwd link; ln -s loop loop",
    )
    said = {
        "bin": "bin is a binary file. Use bash: file, strings, xxd.",
        "latin": "latin is not UTF-8 text (byte 2). Convert it with bash: iconv.",
        "pipe": "pipe is not a regular file but a device, pipe or socket.",
        "dir": "dir is a directory.",
        "huge": "huge has more than 8 MiB. Use bash: head, tail, grep.",
        "link": "link leads outside of the sandbox.",
        "loop": "loop is or passes a symbolic link, through which nothing is written.",
        "a\0b": "A path cannot hold a NUL character.",
        "x" * 5000: "The path is too long.",
        "/etc/passwd": "There is no file etc/passwd.",
        "/repos/none/x": "There is no repository none in /repos. There are: none.",
    }
    assert {path: await box.error(read_file, path=path) for path in said} == said


async def test_a_name_that_is_not_there_has_near_ones(box: Box) -> None:
    await box.use(bash, command="mkdir src; touch src/server.py src/service.py readme.md")
    absent = await box.error(read_file, path="src/serve.py")
    assert absent == saying("no file src/serve.py", "src/server.py, src/service.py")
    absent = await box.error(read_file, path="docs/README.md")
    assert "no file docs/README.md" in absent and "readme.md" in absent
    assert await box.error(read_file, path="zzz") == "There is no file zzz."


@pytest.mark.parametrize("asked", ["\u00fcber.txt", "u\u0308ber.txt"])
@pytest.mark.parametrize("there", ["\u00fcber.txt", "u\u0308ber.txt"])
async def test_a_name_that_looks_the_same_is_the_same_file(
    box: Box, there: str, asked: str
) -> None:
    await box.use(write_file, path=f"sub/{there}", content="one\n")
    assert "one" in await box.text(read_file, path=f"sub/{asked}")
    await box.use(edit_file, path=f"sub/{asked}", old="one", new="two")
    await box.use(write_file, path=f"sub/{asked}", content="three", append=True)
    [file] = (box.sandbox.workspace / "sub").iterdir()
    assert file.read_text() == "two\nthree"


async def test_names_tell_nothing_of_what_a_link_leads_to(box: Box) -> None:
    await box.use(bash, command="ln -s /root there; ln -s /none thene")
    said = await box.error(read_file, path="thexe")
    assert sorted(said.partition(" are: ")[2].rstrip(".").split(", ")) == ["thene", "there"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a.txt", "outer"),
        ("/home/me/a.txt", "outer"),
        ("/home/me/notes/a.txt", "inner"),
        ("/mnt/workspace/notes/a.txt", "inner"),
    ],
)
async def test_of_a_made_up_path_the_longest_end_that_exists_is_read(
    box: Box, path: str, found: str
) -> None:
    await box.use(bash, command="mkdir notes; echo outer > a.txt; echo inner > notes/a.txt")
    assert await box.text(read_file, path=path) == found
    for refused in (
        await box.error(write_file, path=path, content="x"),
        await box.error(write_file, path=path, content="x", append=True),
        await box.error(edit_file, path=path, old=found, new="x"),
    ):
        assert refused == saying(f"{path} is outside of /workspace", "leave out the slash")
    assert await box.text(bash, command="cat a.txt notes/a.txt") == "outer\ninner"


async def test_the_home_that_models_make_up_is_the_workspace_in_every_tool(box: Box) -> None:
    await box.use(write_file, path="/home/user/a.txt", content="one\n")
    await box.use(edit_file, path="/home/user/a.txt", old="one", new="two")
    await box.use(bash, command="cp /home/user/a.txt /home/user/b.txt")
    assert await box.text(read_file, path="/home/user/b.txt") == "two"
    assert (box.sandbox.workspace / "b.txt").read_text() == "two\n"
    outside = await box.error(read_file, path="/home/user/../../etc/passwd")
    assert outside == "There is no file etc/passwd."


async def test_of_a_short_text_the_first_line_alone_is_not_what_was_meant(box: Box) -> None:
    await box.use(bash, command="seq 10 > short; seq 1000 > long")
    whole = "\n".join(map(str, range(1, 11)))
    for junk in (
        {"first": 1, "last": 1},
        {"last": 1},
        {"first": 0, "last": 0},
        {"first": -1},
        {"first": 0, "last": 2},
    ):
        assert await box.text(read_file, path="short", **junk) == whole
    assert await box.text(read_file, path="short", first=5, last=5) == "5"
    assert await box.text(read_file, path="short", first=1, last=2) == "1\n2"
    assert await box.text(read_file, path="long", first=1, last=1) == "1"


async def test_a_file_that_a_message_brought_is_found_by_its_name(box: Box) -> None:
    await box.use(write_file, path="received/lease.md", content="Notice: three months.\n")
    for path in ("lease.md", "/workspace/lease.md", "./lease.md", "/lease.md"):
        assert await box.text(read_file, path=path) == "Notice: three months.", path
    assert await box.text(grep, pattern="three", path="lease.md") == (
        "1 line:\nreceived/lease.md:1:Notice: three months."
    )
    assert "edited received/lease.md" in await box.text(
        edit_file, path="lease.md", old="three", new="six"
    )
    await box.use(send_file, path="lease.md")
    assert [name for name, _, _ in box.sent] == ["lease.md"]
    near = " Near names are: received/lease.md."
    assert (await box.error(read_file, path="leese.md")).endswith(near)
    # A file of that name beside it is another one.
    await box.use(write_file, path="lease.md", content="mine")
    assert await box.text(read_file, path="lease.md") == "mine"
    assert await box.text(read_file, path="received/lease.md") == "Notice: six months."


async def test_a_made_up_path_leads_into_no_repository_nor_out_of_one(tmp_path: Path) -> None:
    """The call is marked for the strangers of the place that it names."""
    repos = [HostRepo("site", repository(tmp_path / "site", {"a.txt": "theirs\n"}), mine=False)]
    async with opened(tmp_path / "state", repos=repos) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        await box.use(write_file, path="received/letter.txt", content="theirs")
        for path in ("/home/repos/site/a.txt", "/x/y/../repos/site/a.txt"):
            assert await box.error(read_file, path=path) == saying("no file")
        for path in ("/repos/site/received/letter.txt", "/skills/x/received/letter.txt"):
            assert await box.error(read_file, path=path) == saying("no file")


async def test_an_edit_shows_what_changed(box: Box) -> None:
    await box.use(write_file, path="a.py", content="one = 1\ntwo = 2\nthree = 3\n")
    assert await box.use(edit_file, path="a.py", old="two = 2", new="two = 22") == Output(
        "edited a.py\n-two = 2\n+two = 22",
        shown="--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one = 1\n-two = 2\n+two = 22\n three = 3",
    )
    assert await box.text(read_file, path="a.py") == "one = 1\ntwo = 22\nthree = 3"


async def test_an_edit_that_does_not_fit_says_why(box: Box) -> None:
    await box.use(write_file, path="a.py", content="x = 1\ny = 1\n    return total\n")
    said = {
        "= 1": "old occurs 2 times in a.py, at lines 1, 2. "
        "Copy more of the lines around the one you mean.",
        "  return totals": "old does not occur in a.py. "
        "The nearest lines, from line 3, are:\n    return total",
        "%%%%%%%%": "old does not occur in a.py. Read the file and copy the lines exactly.",
        "a.py": "edit_file changes what stands in a.py, not its name. Rename it with bash: mv.",
        "": "old is empty. Copy the lines to replace exactly; write_file makes a new file.",
        "new": "old and new are the same, so nothing would change.",
    }
    assert {
        old: await box.error(edit_file, path="a.py", old=old, new="new") for old in said
    } == said


async def test_line_ends_of_windows_stay(box: Box) -> None:
    await box.use(bash, command=r"printf 'a\r\nb\r\nc\r\n' > dos")
    edited = await box.use(edit_file, path="dos", old="a\nb", new="x\ny")
    assert edited.text == "edited dos\n-a\n-b\n+x\n+y" and edited.shown.endswith("+y\n c")
    assert await box.text(bash, command="od -c -An dos | tr -s ' '") == r" x \r \n y \r \n c \r \n"


async def test_the_report_is_read_like_a_file(box: Box) -> None:
    assert await box.text(read_file, path="/host.txt") == "name: test"
    assert (await box.error(write_file, path="/host.txt", content="x")).startswith("/host.txt is")


@pytest.mark.parametrize("uid", [-1, 4321] if os.geteuid() == 0 else [-1])
async def test_repositories_of_the_host(tmp_path: Path, uid: int) -> None:
    for name in ("site", "app"):
        repository(tmp_path / name, {"a.txt": "text\n"}, uid=uid)
        (tmp_path / name / "a.txt").chmod(0o600)
    repos = [HostRepo("site", tmp_path / "site"), HostRepo("app", tmp_path / "app", write=True)]
    async with opened(tmp_path / "state", repos=repos) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        assert await box.text(read_file, path="/repos/site/a.txt") == "text"
        refused = await box.error(write_file, path="/repos/site/b.txt", content="x")
        assert refused == saying("/repos/site is read-only", "/workspace")
        await box.use(write_file, path="/repos/app/b.txt", content="x")
        await box.use(edit_file, path="/repos/app/a.txt", old="text", new="word")
        seen = await box.text(
            bash,
            command="cat /repos/app/*.txt; echo y > /repos/app/c.txt; echo z > /repos/site/c.txt",
        )
        assert seen.startswith("word\nx")
        assert seen.endswith("/repos/site/c.txt: Read-only file system\nexit code: 1")
    owners = {path.stat().st_uid for path in (tmp_path / "app").glob("*.txt")}
    assert owners == {(tmp_path / "app").stat().st_uid}
    assert sorted(path.name for path in (tmp_path / "app").glob("*.txt")) == [
        "a.txt",
        "b.txt",
        "c.txt",
    ]


@pytest.mark.parametrize(
    ("content", "old"),
    [
        ("\n".join("ab" * n + "c" for n in range(1, 2800)), "ba" * 3000),
        ("\n".join(["abcabcab" * 20] * 40_000), "bca" * 60),
    ],
)
async def test_a_hostile_file_does_not_hold_up_the_program(
    box: Box, content: str, old: str
) -> None:
    (box.sandbox.workspace / "hostile").write_text(content)
    async with ticking():
        said = await box.error(edit_file, path="hostile", old=old, new="x")
    assert said == saying("does not occur", "hostile")
    assert len(said) < 20_000


@asynccontextmanager
async def ticking() -> AsyncIterator[None]:
    """Fails where the block takes long and nothing else can run in most of it.

    By the processor's time, too: that of others is none of the block's.
    """
    clocks = (time.monotonic, time.process_time)
    longest = [0.0, 0.0]

    async def tick() -> None:
        before = [clock() for clock in clocks]
        while True:
            await asyncio.sleep(0.001)
            now = [clock() for clock in clocks]
            longest[:] = [max(a, c - b) for a, b, c in zip(longest, before, now, strict=True)]
            before = now

    task, began = asyncio.create_task(tick()), [clock() for clock in clocks]
    yield
    took = [clock() - start for clock, start in zip(clocks, began, strict=True)]
    task.cancel()
    assert took[0] < 0.5 or any(a < b / 2 for a, b in zip(longest, took, strict=True))


async def test_a_long_line_is_changed_beside_the_program_and_shown_in_part(box: Box) -> None:
    wide = "ab\x1b[31m\u202e" * 800_000
    (box.sandbox.workspace / "wide").write_text(f"one{wide}")
    async with ticking():
        output = await box.use(edit_file, path="wide", old="oneab", new="twoab")
    assert len(output.shown) < 2 * LINE_CHARACTERS + 100
    assert len(output.text) < 2 * LINE_CHARACTERS + 100
    assert (box.sandbox.workspace / "wide").read_text() == f"two{wide}"


class WatchedText(str):
    """Records how much is searched at once."""

    widest = 0

    def find(self, sought: str, start: int = 0, end: int = 0) -> int:  # type: ignore[override]
        WatchedText.widest = max(WatchedText.widest, end - start)
        return super().find(sought, start, end)


@given(text=st.text("ab\n", max_size=60), old=st.text("ab\n", min_size=1, max_size=7))
def test_what_is_searched_in_pieces_is_found_as_if_it_were_searched_at_once(
    text: str, old: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "PIECE", 4)
        found = list(files.occurrences(WatchedText(text), old))
        assert files.split_lines(text) == text.splitlines()
    assert len(found) == text.count(old)
    assert all(text.startswith(old, at) for at in found)
    assert WatchedText.widest <= 4 + 7


async def test_an_edit_of_a_hostile_file_shows_its_own_lines_alone(box: Box) -> None:
    content = "".join(f"{'ab' * 40}{n % 7}\n" for n in range(60_000))
    (box.sandbox.workspace / "long").write_text(content.replace("\n", " here\n", 1))
    output = await box.use(edit_file, path="long", old=" here", new=" there")
    line = "ab" * 40
    assert output.shown.splitlines()[2:] == [
        "@@ -1,3 +1,3 @@",
        f"-{line}0 here",
        f"+{line}0 there",
        f" {line}1",
        f" {line}2",
    ]


async def test_a_change_of_many_lines_is_shown_as_removed_and_added(box: Box) -> None:
    old = "".join(f"{n}\n" for n in range(500))
    (box.sandbox.workspace / "many").write_text(f"first\n{old}last\n")
    output = await box.use(edit_file, path="many", old=old, new="one\n")
    assert output.shown.splitlines()[2:5] == ["@@ -1,502 +1,3 @@", "-first", "-0"]
    assert (box.sandbox.workspace / "many").read_text() == "first\none\nlast\n"


BREAKS = ["\x0c", "\x85", "\u2028", "\u2029", "\r", "\x0b", "\x1c", "\x1d", "\x1e", "\x0c\x0b"]


@pytest.mark.parametrize("sign", BREAKS, ids=ascii)
async def test_lines_are_counted_as_grep_and_sed_count_them(box: Box, sign: str) -> None:
    await box.use(write_file, path="a", content=f"one{sign}two\nthree{sign}\n\nwanted here\nlast")
    assert (await box.text(grep, pattern="wanted")).startswith("1 line:\na:4:wanted")
    assert await box.text(bash, command="sed -n 4p a") == "wanted here"
    assert await box.text(read_file, path="a", first=4, last=4) == "wanted here"
    assert len((await box.text(read_file, path="a")).split("\n")) == 5
    assert await box.error(read_file, path="a", first=6) == "a has only 5 lines."
    edited = await box.use(edit_file, path="a", old="wanted", new="found")
    assert edited.shown == saying("@@ -2,4 +2,4 @@")
    assert (await box.error(edit_file, path="a", old="last one", new="x")) == saying("from line 5")


@pytest.mark.parametrize(
    ("text", "old", "new", "written"),
    [
        ("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n"),
        ("a\r\nb\r\n", "a\n", "", "b\r\n"),
        ("a\r\nb\r\n", "a\nb", "x\r\ny", "x\r\ny\r\n"),
        ("a\r\nb", "b", "b\nc\n", "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\nc\n", "a\r\nb\n", "x\ny\n", "x\r\ny\r\nc\n"),
        ("a\nb\r\nc\r\n", "a", "x\ny", "x\ny\nb\r\nc\r\n"),
        ("a\nb\n", "a", "x\ny", "x\ny\nb\n"),
        ("\n\r\n", "\r\n", "x\n", "\nx\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "x\ny", "x\r\ny\r\n"),
        ("a\nb\r\nc\n", "a\r\nb\r\nc", "x", "x\n"),
        ("a\r\nb", "\nb", "\nc", "a\r\nc"),
        ("a\r\nb\r\n", "\nb", "", "a\r\n"),
        ("a\r\nb", "\n", "\n\n", "a\r\n\r\nb"),
        ("a\r\nb\nc", "\nb", "\nx", "a\r\nx\nc"),
        ("a\nb\n", "a", "x\r\ny", "x\ny\nb\n"),
        ("a\nb\n", "b\n", "b\r\nc\r\n", "a\nb\nc\n"),
        ("a\nb\nc\n", "a\r\nb", "x\r\ny", "x\ny\nc\n"),
        ("a\nb\nc\n", "a\nb\r\nc", "x", "x\n"),
        ("a\nb\r\nc\nd\n", "c", "x\r\ny", "a\nb\r\nx\ny\nd\n"),
        ("a\nb\nc\r\nd\r\n", "\r\nd", "\nx\ny", "a\nb\nc\r\nx\r\ny\r\n"),
        ("a\r\nb\nc\n", "a\nb\r\nc", "x\ny", "x\r\ny\n"),
        ("one line", "one", "x\r\ny", "x\r\ny line"),
        ("a\rb\rc\r", "b", "x\ny", "a\rx\ry\rc\r"),
        ("a\rb\rc\r", "a\nb", "x", "x\rc\r"),
        ("a\rb\rc", "\nc", "\nx\ny", "a\rb\rx\ry"),
    ],
)
async def test_an_edit_keeps_the_line_ends_around_it(
    box: Box, text: str, old: str, new: str, written: str
) -> None:
    await box.use(write_file, path="a", content=text)
    await box.use(edit_file, path="a", old=old, new=new)
    async with asyncio.timeout(SECONDS):
        with await box.sandbox.files.open("a") as file:
            assert file.read() == written.encode()


@pytest.mark.parametrize(
    ("path", "lasting"),
    [
        ("~", "/workspace/"),
        ("~/notes.txt", "/workspace/notes.txt"),
        ("$HOME/notes.txt", "/workspace/notes.txt"),
        (" ~/notes.txt\n", "/workspace/notes.txt"),
        ("file:///tmp/a", "/workspace/a"),
        ("/tmp/x/y.md", "/workspace/x/y.md"),
        ("/workspace/../tmp/z", "/workspace/z"),
        ("~root/a.txt", "/workspace/a.txt"),
        ("'~/a.txt'", "/workspace/a.txt"),
        (r"~\notes.txt", "/workspace/notes.txt"),
        ("$TMPDIR/a.txt", "/workspace/a.txt"),
        ("${TMPDIR}/a.txt", "/workspace/a.txt"),
        ("$TEMP/a.txt", "/workspace/a.txt"),
        ("${HOME:-/root}/a.txt", "/workspace/a.txt"),
        ('"$HOME"/a.txt', "/workspace/a.txt"),
        ('"${HOME}"/b/a.txt', "/workspace/b/a.txt"),
        (r"\~/a.txt", "/workspace/a.txt"),
        ("“~/a.txt”", "/workspace/a.txt"),
        ("<~/a.txt>", "/workspace/a.txt"),
        (r"%USERPROFILE%\a.txt", "/workspace/a.txt"),
        ("\u200b~/a.txt", "/workspace/a.txt"),
        ("～/a.txt", "/workspace/a.txt"),
        ("file://localhost/tmp/a.txt", "/workspace/a.txt"),
    ],
)
async def test_what_would_not_last_is_refused_with_a_place_that_does(
    box: Box, path: str, lasting: str
) -> None:
    for refused in (
        await box.error(write_file, path=path, content="x"),
        await box.error(read_file, path=path),
        await box.error(grep, pattern="x", path=path),
    ):
        assert refused == saying("emptied", f"Use {lasting},")
    assert await box.sandbox.files.names("") == []


OF_HOME = ["~/*.txt", "/tmp/a/b.md", "$HOME/*.txt", "${HOME}/a/**", "~root/*.txt", "$TMPDIR/*", '"$HOME"/*.txt',
           r"\~/*.md", "'~/*.txt'", "file:///tmp/*.txt", "%TEMP%/*", "“~/*”"]  # fmt: skip


@pytest.mark.parametrize("pattern", OF_HOME)
async def test_nothing_is_listed_that_does_not_last(box: Box, pattern: str) -> None:
    for refused in (
        await box.error(list_files, pattern=pattern),
        await box.error(grep, pattern="x", glob=pattern),
    ):
        assert refused == saying("emptied", "Use /workspace/")


AROUND_A_PATH = ["\ta.txt \n", "file:///workspace/a.txt", "file:/workspace/a.txt", "sandbox:/workspace/a.txt",
                 '"a.txt"', "'/workspace/a.txt'", "`a.txt`", "$PWD/a.txt", "${PWD}/a.txt", "'$PWD//a.txt'",
                 "~/../workspace/a.txt", "$WORKSPACE/a.txt", "${WORKSPACE}/a.txt", '"$WORKSPACE/a.txt"', "~+/a.txt",
                 "file://localhost/workspace/a.txt", "FILE:///workspace/a.txt", "$(pwd)/a.txt", '"$PWD"/a.txt',
                 '"$(pwd)"//a.txt', "“a.txt”", "<a.txt>", "<file:a.txt>", "\u200ba.txt", "\ufeff$PWD/a.txt",
                 '"${WORKSPACE}"/a.txt', "“$PWD/a.txt”"]  # fmt: skip


@pytest.mark.parametrize("path", AROUND_A_PATH)
async def test_what_stands_around_a_path_is_no_part_of_it(box: Box, path: str) -> None:
    await box.use(write_file, path=path, content="x")
    assert await box.sandbox.files.names("") == ["a.txt"]
    assert await box.text(read_file, path=path) == "x"
    for listed in (
        await box.text(list_files, pattern=path.replace("a.txt", "*.txt")),
        await box.text(list_files, pattern="*", path=path.replace("a.txt", "")),
        await box.text(list_files, pattern=path),
    ):
        assert listed == "1 file:\na.txt (1 bytes)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\n", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb", b"a\r\nb\r\nx\r\ny\r\n"),
        (b"a\nb\r\n", b"a\nb\r\nx\r\ny\r\n"),
        (b"a\r\nb\n", b"a\r\nb\nx\ny\n"),
        (b"a", b"a\nx\ny\n"),
        (b"a\rb\r", b"a\rb\rx\ry\r"),
        (b"a\rb", b"a\rb\rx\ry\r"),
    ],
)
async def test_what_is_added_ends_its_lines_as_the_file_does(
    box: Box, before: bytes, after: bytes
) -> None:
    file = box.sandbox.workspace / "a.txt"
    file.write_bytes(before)
    await box.use(write_file, path="a.txt", content="x\ny\n", append=True)
    assert file.read_bytes() == after


UTF_16 = ["Zürich\n", "Привет, мир\n", "合同期限为三年。\n" * 9, "a;b\r\n1;2\r\n", "שלום לכולם\n", "하나 둘\n"]  # fmt: skip


@cases(("encoding", "text"), [(f"utf-16{end}", text) for end in ("", "-le", "-be") for text in UTF_16])  # fmt: skip
async def test_utf16_is_named(box: Box, encoding: str, text: str) -> None:
    (box.sandbox.workspace / "a.txt").write_bytes(text.encode(encoding))
    assert await box.error(read_file, path="a.txt") == saying("UTF-16", "iconv")


@cases(
    "raw",
    [
        b"\0",
        b"\x7fELF\2\1\1\0\0",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"log line\0\0\0\n" * 9,
        bytes(64),
    ],
)
async def test_bytes_are_named(box: Box, raw: bytes) -> None:
    (box.sandbox.workspace / "a.txt").write_bytes(raw)
    assert await box.error(read_file, path="a.txt") == saying("binary", "xxd")


async def test_a_file_of_that_name_is_reached_from_its_folder(box: Box) -> None:
    await box.use(bash, command="mkdir '~'; echo x > '~/a'")
    assert await box.text(read_file, path="./~/a") == "x"
