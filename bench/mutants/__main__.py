"""Put small faults into the core, one at a time, and see whether the nearest tests notice.

    python -m bench.mutants [--sample 60] [--seed S] [--only MODULE] [--minutes 55] [--jobs 2]

mutmut's operators make the faults; the tests that run the changed line decide, quick ones of
the same folder first, and what they let through is shown to mypy. Everything happens in
copies of the tree. Which test runs which line is measured first (about ten minutes) and
kept in .cache/mutants; later only test files that changed are measured again, or all with
--fresh. Prints each fault with its outcome, and the share that was noticed. mutants.toml
beside this file names the modules, and the faults that nobody could notice.
"""

import argparse
import asyncio
import re
import signal
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random

from pydantic import BaseModel

from bench.mutants.copy import Copy, copied
from bench.mutants.mutant import Mutant, Source, drawn
from bench.mutants.record import Record

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PYTEST = [
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-m",
    "not slow and not live and not browser",
]
COVERAGE = "[run]\nsource = agent, backend, bot\nrelative_files = true\ndata_file = {data}\n"
MEASURE_SECONDS = 45 * 60.0
TESTS_SECONDS = 60.0  # of tests for one mutant, as measured without it
START_SECONDS = 60.0  # for Python, pytest and imports on a busy machine
SLOWER = 4  # times what was measured, then it counts as hanging
MYPY_SECONDS = 600.0


class Silent(BaseModel, extra="forbid"):
    line: re.Pattern[str]
    because: str


class Harmless(BaseModel, extra="forbid"):
    file: str
    was: str
    now: str
    because: str


class Core(BaseModel, extra="forbid"):
    """mutants.toml."""

    modules: list[str]
    far: list[str] = []
    silent: list[Silent] = []
    harmless: list[Harmless] = []

    @classmethod
    def load(cls, path: Path) -> "Core":
        return cls(**tomllib.loads(path.read_text("utf-8")))

    def sources(self, tree: Path, only: str | None) -> list[Source]:
        """Of the modules, or of the file or folder `only`, written as a path or with dots."""
        files = self.modules
        if only:
            place = tree / only.removesuffix(".py").replace(".", "/")
            paths = [place.with_suffix(".py"), *sorted(place.rglob("*.py"))]
            files = [str(path.relative_to(tree)) for path in paths if path.is_file()]
        silent = [row.line for row in self.silent]
        return [Source(file, (tree / file).read_text("utf-8"), silent) for file in files]

    def why_harmless(self, mutant: Mutant) -> str | None:
        for row in self.harmless:
            if (row.file, row.was, row.now) == (mutant.file, mutant.was, mutant.now):
                return row.because
        return None


@dataclass(frozen=True)
class Outcome:
    """`how`: killed, timeout, mypy, survived or harmless; `by`: the test, or why."""

    how: str
    by: str = ""


async def outcome(
    copy: Copy, core: Core, record: Record, mutant: Mutant, start_s: float = START_SECONDS
) -> Outcome:
    if because := core.why_harmless(mutant):
        return Outcome("harmless", because)
    source = (copy.tree / mutant.file).read_text("utf-8")
    tests = record.nearest(mutant.file, source, mutant.lines, TESTS_SECONDS)
    if not tests:
        return Outcome("survived", "no test runs anything of this file")
    listed = copy.folder / "tests"
    pytest = [*PYTEST, "-x", "--tb=no", "-rfE", f"--basetemp={copy.folder}/b", f"@{listed}"]
    near = f"tests/{Path(mutant.file).parent}/"
    # Most faults are noticed there: the other files are imported for the rest alone.
    batches = [[test for test in tests if test.startswith(near) == same] for same in (True, False)]
    with copy.changed(mutant.file, mutant.code):
        for batch in filter(None, batches):
            listed.write_text("\n".join(batch), "utf-8")
            seconds = start_s + SLOWER * sum(record.seconds[record.tests[test]] for test in batch)
            status, output = await copy.python(*pytest, seconds=seconds)
            if status is None:
                return Outcome("timeout")
            if status:
                if "ERROR: not found" in output:
                    raise RuntimeError(f"{listed} names what is not there:\n{output}")
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
                return Outcome("killed", failed[1] if failed else "it cannot be imported")
        status, output = await copy.python(
            "-m", "mypy", f"--cache-dir={copy.kept}/mypy", seconds=MYPY_SECONDS
        )
        if status:
            return Outcome("mypy", output.splitlines()[0])
    return Outcome("survived", f"{len(tests)} tests passed")


async def measure(copy: Copy, core: Core, record: Record) -> None:
    """Bring the record up to date with the test files of the copy."""
    files = [file for file in record.outdated(copy.tree) if not file.startswith((*core.far,))]
    if not files:
        return
    print(f"Measuring which lines {len(files)} test files run ...", flush=True)
    junit, data, config = (copy.folder / name for name in ("junit.xml", "coverage", "coveragerc"))
    config.write_text(COVERAGE.format(data=data), "utf-8")
    status, output = await copy.python(
        *PYTEST, "-n", str(min(2, len(files))), "--dist", "loadfile", f"--basetemp={copy.folder}/b",
        "--cov", "--cov-context=test", "--cov-report=", f"--cov-config={config}",
        "--tb=line", "-o", "junit_family=xunit1", f"--junitxml={junit}", *files,
        seconds=MEASURE_SECONDS,
    )  # fmt: skip
    if status not in (0, 1, 5):
        raise RuntimeError(f"The tests could not be measured:\n{output[-5000:]}")
    if status == 1:
        print(f"Some tests fail without any mutant and are left out:\n{output[-5000:]}")
    record.add(copy.tree, files, junit, data)


async def run(
    root: Path, core: Core, options: argparse.Namespace, report: Callable[[Mutant, Outcome], None]
) -> None:
    """Until the sample is through, or the time is over."""
    with ExitStack() as stack, suppress(TimeoutError):
        async with asyncio.timeout(options.minutes * 60):
            copies = [stack.enter_context(copied(root)) for _ in range(options.jobs)]
            saved = copies[0].kept / "record.json.gz"
            record = Record() if options.fresh else Record.load(saved)
            await measure(copies[0], core, record)
            record.save(saved)
            sources = core.sources(copies[0].tree, options.only)
            mutants = islice(drawn(sources, Random(options.seed)), options.sample)

            async def work(copy: Copy) -> None:
                for mutant in mutants:
                    report(mutant, await outcome(copy, core, record, mutant))

            async with asyncio.TaskGroup() as workers:
                for copy in copies:
                    workers.create_task(work(copy))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.mutants", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sample", type=int, default=60, metavar="N")
    parser.add_argument("--seed", type=int, default=datetime.now(UTC).toordinal(), metavar="S")
    parser.add_argument("--only", metavar="MODULE", help="a file or folder, as a path or with dots")
    parser.add_argument("--minutes", type=float, default=55, metavar="M")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants at the same time")
    parser.add_argument("--fresh", action="store_true", help="measure all tests anew")
    options = parser.parse_args(words)
    counted: Counter[str] = Counter()

    def report(mutant: Mutant, outcome: Outcome) -> None:
        counted[outcome.how] += 1
        number = f"{counted.total()}/{options.sample}"
        print(
            f"{number:>7} {outcome.how}: {mutant.file}:{mutant.line} ({outcome.by})\n{mutant}",
            flush=True,
        )

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        asyncio.run(run(ROOT, Core.load(HERE / "mutants.toml"), options, report))
    noticed = counted["killed"] + counted["timeout"] + counted["mypy"]
    told = ", ".join(f"{how} {n}" for how, n in counted.most_common()) or "none"
    share = f": {noticed / all_:.0%} noticed" if (all_ := noticed + counted["survived"]) else ""
    print(f"seed {options.seed}; {told}{share}")


if __name__ == "__main__":
    main()
