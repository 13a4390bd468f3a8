"""Documents in the background: what reading them costs, and how quick searches are meanwhile and afterwards.

    python -m bench.documents [--count 1000] [--pages 10] [--kind pdf|md]

Writes a folder of documents, lets the indexer read it at its own pace, and prints its share of a core (all
of its processes, and the searches), the time in all, the size of the database and the p50 and p95 of searches while it reads
and once it has read, and then of the processor alone, which others that load the machine do not change. Targets: under half a core, searches p95 50 ms.
"""

import argparse
import asyncio
import random
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from agent.documents.indexer import DocumentIndexer
from agent.documents.library import Library
from agent.documents.reading import DocumentReader, program
from agent.store import open_store
from fakes import documents, sandbox_box

SEARCHES = 300
SANDBOX_SECONDS = 0.012  # to make one and take it away (bench/sandbox.py)
SHOWN = 5  # passages of a search, as docs search has it
CORE_SHARE, SEARCH_MS = 0.5, 50.0
WORDS_PER_PAGE = 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--kind", choices=("pdf", "md"), default="pdf")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(bench(Path(folder), asked.count, asked.pages, asked.kind))


async def bench(folder: Path, count: int, pages: int, kind: str) -> int:
    dice = random.Random(7)
    words = vocabulary(dice)
    shelf = folder / "shelf"
    shelf.mkdir()
    folder.chmod(0o755)
    for number in range(count):
        texts = [page(dice, words, number) for _ in range(pages)]
        content = documents.pdf(texts) if kind == "pdf" else "\n\n".join(texts).encode()
        (shelf / f"{number}.{kind}").write_bytes(content)
    each = program_seconds(sorted(shelf.iterdir())[:10])
    async with (
        sandbox_box.opened(folder / "state") as sandboxes,
        open_store(folder / "state/voltaire.db") as store,
    ):
        reader = DocumentReader(sandboxes, {"shelf": shelf})
        indexer = DocumentIndexer(store.documents, reader, lambda: False, look_seconds=3600.0)
        library = Library(store.documents, reader, "cli")
        own, began = time.process_time(), time.monotonic()
        work = asyncio.create_task(read_all(indexer))
        during = []
        while not work.done():
            during += await search(library, dice, words, 3)
            await asyncio.wait({work}, timeout=1.0)
        await work
        took = time.monotonic() - began
        own = time.process_time() - own
        after, spent = list[float](), list[float]()
        for _ in range(SEARCHES):
            before = time.process_time()
            after += await search(library, dice, words, 1)
            spent.append(time.process_time() - before)
        size = (folder / "state/voltaire.db").stat().st_size
        failed = [
            one.note
            for one in await store.documents.seen_by("cli", ["shelf"])
            if one.state != "ready"
        ]
        if failed:
            print(f"{len(failed)} could not be read: {failed[0]}")
    share = (own + count * each) / took
    print(
        f"{count} documents of {pages} pages ({kind}) in {took:.0f} s, {took / count * 1000:.0f} ms each"
    )
    print(
        f"share of a core: {share:.2f} ({own / count * 1000:.0f} ms of ours, {each * 1000:.0f} ms of the sandbox's a document)"
    )
    print(f"database: {size / 1e6:.0f} MB")
    for name, seconds in (
        ("while it reads", during),
        ("afterwards", after),
        ("afterwards, processor", spent),
    ):
        print(
            f"search {name}: p50 {quantile(seconds, 50):.1f} ms, p95 {quantile(seconds, 95):.1f} ms"
        )
    good = share < CORE_SHARE and quantile(after, 95) < SEARCH_MS and not failed
    return 0 if good else 1


async def read_all(indexer: DocumentIndexer) -> None:
    while await indexer.run_once():
        pass


async def search(
    library: Library, dice: random.Random, words: list[str], count: int
) -> list[float]:
    """How long each of so many searches of one to four words took, rare and common ones."""
    took = []
    for _ in range(count):
        query = " ".join(word(dice, words) for _ in range(dice.randint(1, 4)))
        began = time.perf_counter()
        await library.search(query, SHOWN)
        took.append(time.perf_counter() - began)
    return took


def vocabulary(dice: random.Random) -> list[str]:
    syllables = ["ka", "lo", "mi", "ru", "ten", "sa", "vor", "ble", "qui", "nor", "dus", "pe"]
    return ["".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(20_000)]


def word(dice: random.Random, words: list[str]) -> str:
    """By the law of Zipf and Mandelbrot, as words are in texts: the first in one of twenty places."""
    return words[min(int(2.7 * (len(words) / 2.7) ** dice.random() - 1.7), len(words) - 1)]


def page(dice: random.Random, words: list[str], number: int) -> str:
    lines = [" ".join(word(dice, words) for _ in range(10)) for _ in range(WORDS_PER_PAGE // 10)]
    return "\n".join([f"Report {number}", *lines])


def quantile(seconds: list[float], percent: int) -> float:
    """Milliseconds."""
    if len(seconds) < 2:
        return 1000 * sum(seconds)
    return 1000 * statistics.quantiles(seconds, n=100)[percent - 1]


def program_seconds(paths: list[Path]) -> float:
    """CPU of reading a document, by the same programs outside of a sandbox: of a sandbox's, which
    belong to another user where we are root, nobody is told."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for path in paths:
        command = ["python3", "-I", "-S", "-c", program(), str(path), "60"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return SANDBOX_SECONDS + spent / len(paths)


if __name__ == "__main__":
    raise SystemExit(main())
