"""Which test runs which line, and how long it takes: measured once, and anew for tests that changed.

Lines are known by their text, so that the record outlives edits elsewhere in the file.
A test is named as pytest names it, without parameters.
"""

import ast
import gzip
import hashlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePath
from xml.etree import ElementTree

from coverage import CoverageData
from pydantic import BaseModel

NO_FAILURE = {"properties", "skipped", "system-out", "system-err"}


class Record(BaseModel):
    files: dict[str, str] = {}
    """The digest of each test file when its tests were measured."""
    tests: dict[str, int] = {}
    """The number of each test, ever given."""
    seconds: dict[int, float] = {}
    """How long a test takes, fixtures included; of tests that are there and pass."""
    ran: dict[str, dict[str, set[int]]] = {}
    """Of each source file, by the text of a line: the tests that run it."""

    @classmethod
    def load(cls, path: Path) -> "Record":
        if not path.exists():
            return cls()
        return cls.model_validate_json(gzip.decompress(path.read_bytes()))

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(self.model_dump_json().encode(), 1))

    def outdated(self, tree: Path) -> list[str]:
        """Test files that are new or changed since they were measured."""
        there = _digests(tree)
        return [file for file, digest in there.items() if self.files.get(file) != digest]

    def add(self, tree: Path, files: Iterable[str], junit: Path, coverage: Path) -> None:
        """Take over what a run of these test files measured; tests that are gone are forgotten."""
        there, measured = _digests(tree), set(files)
        kept = {file: digest for file, digest in self.files.items() if file in there}
        self.files = {**kept, **{file: there[file] for file in measured}}
        for name, number in self.tests.items():
            file = name.partition("::")[0]
            if file in measured or file not in there:
                self.seconds.pop(number, None)
        for name, seconds in _passed(junit).items():
            self.seconds[self.tests.setdefault(name, len(self.tests))] = seconds
        lines_run = CoverageData(str(coverage))
        lines_run.read()
        for path in lines_run.measured_files():
            file = str(PurePath(path).relative_to(tree)) if PurePath(path).is_absolute() else path
            texts = dict(enumerate((tree / file).read_text("utf-8").splitlines(), 1))
            ran = self.ran.setdefault(file, {})
            for line, contexts in lines_run.contexts_by_lineno(path).items():
                names = {context.partition("|")[0].partition("[")[0] for context in contexts}
                numbers = {self.tests[name] for name in names if name in self.tests}
                ran.setdefault(texts.get(line, "").strip(), set()).update(numbers)

    def nearest(self, file: str, code: str, lines: range, budget: float) -> list[str]:
        """Tests that run these lines; at least one, more while they take `budget` seconds at most.

        Tests of the same folder come first, then quick ones. Where no test runs the lines (or they run
        at import), tests that run their statement; else those that run anything of the file.
        """
        ran = self.ran.get(file, {})
        texts = code.splitlines()
        spans = [lines, _statement(code, lines), range(1, len(texts) + 1)]
        found = ({n for i in s for n in ran.get(texts[i - 1].strip(), ())} for s in spans)
        numbers = next(filter(None, (some & self.seconds.keys() for some in found)), set())
        names = {number: name for name, number in self.tests.items()}
        folder = str(PurePath("tests", file).parent)
        chosen: list[str] = []
        order = sorted((not names[n].startswith(folder), self.seconds[n], n) for n in numbers)
        for _, _, number in order:
            budget -= self.seconds[number]
            if chosen and budget < 0:
                break
            chosen.append(names[number])
        return chosen


def _digests(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((tree / "tests").rglob("test_*.py"))
    }


def _passed(junit: Path) -> dict[str, float]:
    """The tests of a report in pytest's xunit1 form of which no case failed, and their seconds."""
    seconds: defaultdict[str, float] = defaultdict(float)
    failed = set()
    for case in ElementTree.parse(junit).iter("testcase"):
        file, name = case.attrib["file"], case.attrib["name"].partition("[")[0]
        module = file.removesuffix(".py").replace("/", ".")
        inside = case.attrib["classname"].removeprefix(module).split(".")[1:]
        test = "::".join([file, *inside, name])
        seconds[test] += float(case.attrib["time"])
        if not file.startswith("tests/") or not {child.tag for child in case} <= NO_FAILURE:
            failed.add(test)
    return {test: took for test, took in seconds.items() if test not in failed}


def _statement(code: str, lines: range) -> range:
    """From the start of the innermost statement around these lines to their end."""
    around = [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.stmt)
        and node.lineno <= lines.start
        and lines.stop - 1 <= (node.end_lineno or node.lineno)
    ]
    return range(max(around, default=lines.start), lines.stop)
