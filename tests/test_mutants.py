"""The mutation run itself, over a small tree of its own: what it draws, and what it says of each."""

import argparse
import re
import subprocess
from pathlib import Path
from random import Random

import pytest

from bench.mutants.__main__ import HERE, ROOT, Core, measure, outcome, run
from bench.mutants.copy import copied
from bench.mutants.mutant import Mutant, Source, drawn
from bench.mutants.record import Record

CODE = '''
import logging

LIMIT = 3

def under(number: int) -> bool:
    """Nothing of this text is changed."""
    logging.info("asked %s", number)
    return number < LIMIT

def words(text: str) -> list[str]:
    return text.split(";", 1)

def label(number: int) -> str:
    text = str(number)
    return text

def loop(times: int) -> str:
    while times > 0:
        times -= 1
    return "done"
'''
TESTS = """
import pytest
from agent.sums import label, loop, under, words

def test_under():
    assert under(2) and not under(3)

def test_words():
    assert words("a;b;c")

@pytest.mark.parametrize("text", ["a;b", "fails without any mutant"])
def test_two_words(text):
    assert words(text) == ["a", "b"]

def test_label():
    label(1)

def test_loop():
    assert loop(2) == "done"
"""
PROJECT = """
[tool.pytest.ini_options]
addopts = "--strict-markers --import-mode=importlib -q"
markers = ["slow", "live", "browser"]
[tool.mypy]
strict = true
packages = ["agent"]
"""


def all_of(code: str, *silent: str, seed: int = 1) -> list[Mutant]:
    source = Source("agent/sums.py", code, [re.compile(line) for line in silent])
    return list(drawn([source], Random(seed)))


def test_every_fault_comes_once_and_says_what_it_changes() -> None:
    mutants = all_of(CODE)
    assert len({mutant.code for mutant in mutants}) == len(mutants) > 20
    (swapped,) = [mutant for mutant in mutants if mutant.now == "return number <= LIMIT"]
    assert (swapped.line, swapped.was) == (9, "return number < LIMIT")
    assert swapped.code == CODE.replace("< LIMIT", "<= LIMIT")
    assert str(swapped) == "    - return number < LIMIT\n    + return number <= LIMIT"


def test_a_seed_names_an_order_in_which_no_kind_waits_for_another() -> None:
    assert all_of(CODE) == all_of(CODE)
    assert all_of(CODE) != all_of(CODE, seed=2)
    first = [mutant.was for mutant in all_of(CODE)[:6]]
    assert sum("(" in line for line in first) == 2, (
        "arguments of calls, values and decisions in turn"
    )


def test_letters_case_texts_and_silent_lines_are_left_alone() -> None:
    assert not [m for m in all_of(CODE) if m.now.casefold() == m.was.casefold()]
    assert not [m for m in all_of(CODE) if "Nothing of this text" in m.was]
    assert [m for m in all_of(CODE) if "logging" in m.was]
    assert not [m for m in all_of(CODE, r"\blogging\.info\(") if "logging" in m.was]


def test_what_is_named_as_harmless_is_still_there() -> None:
    core = Core.load(HERE / "mutants.toml")
    for row in core.harmless:
        lines = [line.strip() for line in (ROOT / row.file).read_text("utf-8").splitlines()]
        assert row.was in "\n".join(lines), row
    assert [file for file in core.modules if not (ROOT / file).is_file()] == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {"agent/sums.py": CODE, "tests/agent/test_sums.py": TESTS}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "agent/__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(PROJECT, "utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.slow
async def test_each_fault_is_told_by_who_noticed_it(tree: Path) -> None:
    mutants = {mutant.now: mutant for mutant in all_of(CODE)}
    harmless = {"file": "agent/sums.py", "was": 'return text.split(";", 1)', "because": "a joke"}
    core = Core.model_validate(
        {"modules": [], "harmless": [{**harmless, "now": 'return text.rsplit(";", 1)'}]}
    )
    record = Record()
    with copied(tree) as copy:
        await measure(copy, core, record)

        async def told(now: str, start_s: float = 100.0) -> tuple[str, str]:
            found = await outcome(copy, core, record, mutants[now], start_s)
            return found.how, found.by

        test = "tests/agent/test_sums.py::test_"
        assert await told("return number <= LIMIT") == ("killed", f"{test}under")
        assert await told("LIMIT = 4") == ("killed", f"{test}under"), "a line that runs at import"
        assert await told("return text.split(None, 1)") == ("survived", "1 tests passed")
        assert await told('return text.rsplit(";", 1)') == ("harmless", "a joke")
        assert (await told("text = None"))[0] == "mypy"
        assert (await told("times = 1", start_s=1.0))[0] == "timeout"
        assert (copy.tree / "agent/sums.py").read_text("utf-8") == CODE
    assert not copy.folder.exists()


@pytest.mark.slow
async def test_only_test_files_that_changed_are_measured_again(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Mutant] = []
    options = argparse.Namespace(
        sample=1, seed=1, only="agent.sums", minutes=9, jobs=2, fresh=False
    )
    for printed in (r"Measuring which lines 1 test files run .*test_two_words\[fails", "$"):
        await run(tree, Core(modules=[]), options, lambda mutant, _: seen.append(mutant))
        assert re.match(printed, capsys.readouterr().out, re.S)
    assert seen == all_of(CODE)[:1] * 2, "the same seed, the same sample"
    assert (tree / "agent/sums.py").read_text("utf-8") == CODE
    (tree / "tests/agent/test_sums.py").write_text(TESTS + "\n", "utf-8")
    record = Record.load(tree / ".cache/mutants/record.json.gz")
    assert record.outdated(tree) == ["tests/agent/test_sums.py"]


async def test_when_the_time_is_over_it_ends(tree: Path) -> None:
    options = argparse.Namespace(sample=9, seed=1, only=None, minutes=0, jobs=1, fresh=False)
    await run(tree, Core(modules=["agent/sums.py"]), options, lambda *_: pytest.fail("too late"))


async def test_a_fault_that_signals_its_own_group_ends_nothing_else(tree: Path) -> None:
    with copied(tree) as copy:
        ended, _ = await copy.python("-c", "import os; os.kill(0, 15)", seconds=30)
    assert ended
