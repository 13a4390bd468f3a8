"""What a chat finds in its documents and the owner's folders, and what another chat does not."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent.documents.indexer import (
    DocumentIndexer,
    PassageMeaning,
    files_of,
    follow_folders,
)
from agent.errors import NoSandbox, ToolError
from agent.files import is_document
from agent.memory.search import Embedder
from agent.store.documents import SavedDocument
from agent.tools.bash import bash
from agent.tools.context import ToolContext
from agent.tools.memory import recall
from agent.tools.search import grep
from agent.tools.tool import Call
from fakes import documents
from fakes.sandbox_box import Box
from fakes.words import saying
from tests.agent.documents.conftest import Shelf
from tests.agent.store.test_embeddings import embedding_server
from tests.agent.tools.test_others import Notebook, _allow

CONTRACT = "# Contract\n\n## Notice\n\nEither side may end it with six weeks' notice.\n\n## Price\n\nIt costs 40 euros."


async def found(
    shelf: Shelf, query: str, chat: str = "cli", name: str = ""
) -> list[tuple[str, int, str]]:
    best = await shelf.library(chat).search(query, 5, name)
    return [(one.document.title, one.passage.page, one.passage.text) for one in best]


async def test_an_added_file_is_found_by_its_words(shelf: Shelf) -> None:
    await shelf.file("received/contract.md", CONTRACT.encode())
    added = await shelf.library().add("/workspace/received/contract.md")
    assert (added.title, added.state, added.unit, added.pages) == (
        "contract.md",
        "ready",
        "part",
        1,
    )
    # Other forms of a word, the words of its headings, and where not all words stand together.
    notice = ("contract.md", 1, "Either side may end it with six weeks' notice.")
    assert await found(shelf, "ending sides") == [notice]
    assert await found(shelf, "price") == [("contract.md", 1, "It costs 40 euros.")]
    assert (await found(shelf, "notice euros zebra"))[0] in (
        notice,
        ("contract.md", 1, "It costs 40 euros."),
    )
    assert await found(shelf, "zebra") == await found(shelf, '"" - *') == []


async def test_a_search_in_files_or_notes_that_finds_nothing_goes_on_in_documents(
    shelf: Shelf,
) -> None:
    await shelf.file("received/contract.md", CONTRACT.encode())
    await shelf.library().add("/workspace/received/contract.md")
    notes = Notebook([("Locker 4471.", "turn-1")])
    box = await shelf.reader.sandboxes.of("cli")
    await box.run("mv received /tmp/")  # the index still holds it
    context = ToolContext(box, notes=notes, documents=shelf.library)
    call = Call("1", "turn-7", "cli", context, _allow)
    weeks = "contract.md, part 1:\nEither side may end it with six weeks' notice."
    for used, arguments in (
        (recall, {"query": "notice"}),
        (grep, {"pattern": r"\bnotice\b"}),
        (grep, {"pattern": "notice", "path": "/workspace"}),
        (grep, {"pattern": "notice", "path": "letters/contract.txt"}),
    ):
        output = await used.run(call, arguments)
        assert output.found
        assert weeks in output.text
    assert call.strangers == ["document contract.md"] * 4
    assert "Locker 4471." in (await grep.run(call, {"pattern": "Locker"})).text
    assert not (await grep.run(call, {"pattern": "zebra"})).found
    assert not (await recall.run(call, {"query": "zebra"})).found


async def test_another_chat_finds_none_of_it(shelf: Shelf) -> None:
    await shelf.file("contract.md", CONTRACT.encode())
    await shelf.library().add("contract.md")
    await shelf.store.chats.open("other")
    assert await found(shelf, "notice", "other") == []
    assert await shelf.library("other").documents() == []
    with pytest.raises(ToolError, match=r"There is no document contract\.md"):
        await shelf.library("other").show("contract.md", 1, 9)
    assert await shelf.store.documents.search("other", [], "notice", 5) == []
    # Nor by the word that keeps them apart in the index.
    assert await found(shelf, "c1 notice", "other") == []


async def test_a_forgotten_chat_leaves_no_word_of_its_documents(shelf: Shelf) -> None:
    await shelf.file("contract.md", CONTRACT.encode())
    await shelf.library().add("contract.md")
    await shelf.store.chats.forget("cli")
    counts = [
        await shelf.store.database.value(f"SELECT count(*) FROM {table}")
        for table in ("documents", "passages")
    ]
    indexed = await shelf.store.database.all(
        "SELECT rowid FROM passage_words WHERE passage_words MATCH 'notice'"
    )
    assert (counts, indexed) == ([0, 0], [])


async def test_what_somebody_else_is_reading_is_waited_for(shelf: Shelf) -> None:
    await shelf.store.documents.add("cli", "a.md", 1, 0.0)
    document = await begun(shelf)
    assert document
    asked = asyncio.create_task(found(shelf, "notice"))
    await asyncio.sleep(0)
    await shelf.store.documents.finish(document, [(1, "", "six weeks' notice")], "part", 1)
    assert await asked == [("a.md", 1, "six weeks' notice")]


async def test_a_folder_that_is_read_in_the_background_holds_up_no_search(shelf: Shelf) -> None:
    await shelf.store.documents.sync_folder("handbook", {"notes.md": (1, 1.0)})
    assert await found(shelf, "bees") == []
    [document] = await shelf.library().documents()
    assert document.state == "waiting" and not shelf.store.documents.reading


async def test_the_pages_asked_for_are_shown(shelf: Shelf) -> None:
    parts = [("1", "One"), ("", "first"), ("break", "second"), ("break", "third")]
    await shelf.file("a.docx", documents.docx(parts))
    await shelf.library().add("a.docx")
    document, shown = await shelf.library().show("a.docx", 2, 3)
    assert (document.pages, document.unit) == (3, "page")
    assert [(one.page, one.text) for one in shown] == [(2, "second"), (3, "third")]
    with pytest.raises(ToolError, match=r"^a\.docx has 3 pages\.$"):
        await shelf.library().show("a.docx", 4, 4)


async def test_a_document_is_forgotten_and_its_file_stays(shelf: Shelf) -> None:
    await shelf.file("contract.md", CONTRACT.encode())
    await shelf.library().add("contract.md")
    await shelf.library().forget("contract.md")
    assert await found(shelf, "notice") == []
    assert await shelf.library().documents() == []
    await shelf.library().add("contract.md")
    with pytest.raises(ToolError, match=r"no document contrct\.md\. Did you mean contract\.md\?"):
        await shelf.library().forget("contrct.md")


def indexer(shelf: Shelf) -> DocumentIndexer:
    return DocumentIndexer(
        shelf.store.documents, shelf.reader, lambda: False, look_seconds=0.0, share=1.0
    )


async def read_all(shelf: Shelf) -> None:
    """Look into the folder, and read what waits."""
    follower = indexer(shelf)
    while await follower.run_once():
        pass


async def test_a_folder_is_followed(shelf: Shelf) -> None:
    notes, sub = shelf.folder / "notes.md", shelf.folder / "sub"
    notes.write_text("Bees sleep in winter.")
    sub.mkdir(mode=0o755)
    (sub / "wool.txt").write_text("Sheep give wool.")
    (shelf.folder / ".hidden.md").write_text("Bees hide.")
    (shelf.folder / "link.md").symlink_to("/etc/hostname")
    await read_all(shelf)
    # Every chat finds it, under the folder's name.
    assert await found(shelf, "bees", "anybody") == [
        ("handbook/notes.md", 1, "Bees sleep in winter.")
    ]
    assert await found(shelf, "wool", name="handbook/sub/wool.txt") == [
        ("handbook/sub/wool.txt", 1, "Sheep give wool.")
    ]
    with pytest.raises(ToolError, match="belongs to a folder of the owner's"):
        await shelf.library().forget("handbook/notes.md")

    notes.write_text("Ants sleep as well.")
    (sub / "wool.txt").unlink()
    await read_all(shelf)
    assert await found(shelf, "ants") == [("handbook/notes.md", 1, "Ants sleep as well.")]
    assert await found(shelf, "bees") == await found(shelf, "wool") == []

    del shelf.reader.folders["handbook"]  # type: ignore[attr-defined]
    await follow_folders(shelf.store.documents, shelf.reader.folders)
    assert await found(shelf, "ants") == []


async def test_a_folder_that_is_away_keeps_its_documents(shelf: Shelf) -> None:
    (shelf.folder / "notes.md").write_text("Bees sleep in winter.")
    await read_all(shelf)
    shelf.folder.rename(shelf.folder.with_name("elsewhere"))
    await follow_folders(shelf.store.documents, shelf.reader.folders)
    assert [one[0] for one in await found(shelf, "bees")] == ["handbook/notes.md"]


def test_which_files_are_documents(tmp_path: Path) -> None:
    for name in ("a.PDF", "b.docx", "c.exe", "d", "e.jpg", ".f.md"):
        (tmp_path / name).write_text(name)
    os.mkfifo(tmp_path / "g.txt")
    (tmp_path / "h.txt").touch()  # a sandbox would be started for nothing
    assert dict(files_of(tmp_path)) == {
        name: (len(name), (tmp_path / name).stat().st_mtime) for name in ("a.PDF", "b.docx")
    }
    assert is_document("b.PY") and not is_document("program")


@pytest.mark.parametrize(
    ("name", "there"),
    [("no\xa0break.md", True), ("ideographic\u3000space.md", True), ("été 日本.md", True),
     ("line\nbreak.md", False), ("tab\t.md", False), ("turned\u202edm.md", False), ("\udcff.md", False)],
    ids=["no-break", "ideographic", "letters", "line", "tab", "turned", "no-utf-8"],
)  # fmt: skip
def test_a_name_that_fits_on_a_line_and_hides_nothing_is_a_documents(
    tmp_path: Path, name: str, there: bool
) -> None:
    (tmp_path / name).write_text("x")
    assert list(dict(files_of(tmp_path))) == ([name] if there else [])


async def test_a_folder_that_holds_too_many_says_so(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.documents.indexer.MOST_FILES", 2)
    monkeypatch.setattr("agent.documents.library.MOST_FILES", 2)
    for name in "abc":
        (shelf.folder / f"{name}.md").write_text(name)
    await read_all(shelf)
    box = Box(await shelf.reader.sandboxes.of("cli"), documents=shelf.library)
    listed = await box.text(bash, command="docs list")
    assert listed == saying("handbook/a.md", "handbook/b.md", "handbook is full")


async def begun(shelf: Shelf) -> SavedDocument | None:
    return await shelf.store.documents.begin()


async def test_where_nothing_can_be_isolated_a_document_goes_on_waiting(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise NoSandbox("The sandbox does not work here.")

    await shelf.store.documents.add("cli", "a.md", 1, 0.0)
    monkeypatch.setattr(type(shelf.reader), "read", refused)
    for _ in range(4):
        with pytest.raises(NoSandbox):
            await indexer(shelf).run_once()
    [document] = await shelf.store.documents.seen_by("cli", [])
    assert document.state == "waiting"


@pytest.mark.parametrize("end", ["finish", "fail", "release"])
async def test_who_was_overtaken_takes_nothing_away(shelf: Shelf, end: str) -> None:
    table = shelf.store.documents
    await table.add("cli", "a.md", 1, 0.0)
    slow = await begun(shelf)
    await table.add("cli", "a.md", 2, 0.0)
    quick = await begun(shelf)
    assert slow and quick
    await table.finish(quick, [(1, "", "new words")], "part", 1)
    match end:
        case "finish":
            await table.finish(slow, [(1, "", "old words")], "part", 1)
        case "fail":
            await table.fail(slow, "It is damaged.")
        case _:
            table.release(slow)
    [document] = await table.seen_by("cli", [])
    assert document.state == "ready" and table.reading == {document.id: quick}
    assert await found(shelf, "words") == [("a.md", 1, "new words")]


async def test_one_file_that_is_added_many_times_at_once_is_there(shelf: Shelf) -> None:
    await shelf.file("a.md", CONTRACT.encode())
    added = await asyncio.gather(*(shelf.library().add("a.md") for _ in range(4)))
    assert {(one.state, one.pages) for one in added} == {("ready", 1)}
    assert await found(shelf, "price") == [("a.md", 1, "It costs 40 euros.")]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It says so (a.docx, page 2).", []),
        ("It says so (a.docx, page 4).", ["a.docx has 3 pages, no page 4."]),
        ("See **a.docx**, pp. 2-7.", ["a.docx has 3 pages, no page 7."]),
        ("Siehe „a.docx“, S. 12.", ["a.docx has 3 pages, no page 12."]),
        ("a.docx, page 2, and b.docx, page 40", []),
        ("Page 40 of something. And then a.docx.", []),
        ("aa.docx, page 40", []),
    ],
    ids=["right", "wrong", "range", "german", "unknown", "elsewhere", "other name"],
)
async def test_a_cited_page_that_is_not_there_is_noticed(
    shelf: Shelf, text: str, wrong: list[str]
) -> None:
    await shelf.file(
        "received/a.docx", documents.docx([("", "one"), ("break", "two"), ("break", "three")])
    )
    await shelf.library().add("received/a.docx")
    assert await shelf.library().missing_pages(text) == wrong


async def test_what_means_the_same_is_found_without_its_words(shelf: Shelf) -> None:
    await shelf.file(
        "a.md", b"# Fleet\n\nThe automobile is washed on Mondays.\n\n# Kitchen\n\nThe broth is hot."
    )
    await shelf.file("b.md", b"My vehicle is in another chat.", "other")
    async with embedding_server() as (url, _):
        meaning = PassageMeaning(shelf.store.documents, Embedder(url))
        cli, other = (
            replace(shelf.library(), meaning=meaning),
            replace(shelf.library("other"), meaning=meaning),
        )
        await cli.add("a.md")
        await other.add("b.md")
        while await meaning.embed():
            pass
        best = await cli.search("car", 5)
        assert [one.passage.text for one in best] == ["The automobile is washed on Mondays."]
        # By words and by meaning: first in both.
        assert [one.score for one in await cli.search("broth", 1)] == [2.0]
        await cli.forget("a.md")
        assert [*await cli.search("car", 5)] == []
    assert [*await cli.search("car", 5)] == []  # the server is away
