"""Whatever a model sends, a tool answers or gives advice: nothing else is raised."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.errors import ToolError
from agent.tools.files import edit_file, read_file, write_file
from agent.tools.git import git_diff
from agent.tools.search import grep, list_files
from agent.tools.tool import Tool
from fakes.sandbox_box import Box

WORDS = st.one_of(
    st.text(max_size=40),
    st.text(st.characters(codec=None), max_size=20),  # lone surrogates too
    st.lists(st.sampled_from(["..", ".", "", "a", "~", "*", "\0", "x" * 300, "/", "-", "["])).map(
        "/".join
    ),
)
QUICK = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


async def _tried(box: Box, tool: Tool, **arguments: str) -> None:
    try:
        output = await box.use(tool, **arguments)
    except ToolError as error:
        assert str(error)
    else:
        assert output.text


@QUICK
@given(path=WORDS, content=WORDS)
async def test_files(box: Box, path: str, content: str) -> None:
    await _tried(box, write_file, path=path, content=content)
    await _tried(box, read_file, path=path)
    await _tried(box, edit_file, path=path, old=content, new="new")


@QUICK
@given(pattern=WORDS, path=WORDS, glob=WORDS)
async def test_searches(box: Box, pattern: str, path: str, glob: str) -> None:
    await _tried(box, list_files, pattern=pattern, path=path)
    await _tried(box, grep, pattern=pattern, path=path, glob=glob)


@QUICK
@given(repo=WORDS, revision=WORDS, path=WORDS)
async def test_repositories(box: Box, repo: str, revision: str, path: str) -> None:
    await _tried(box, git_diff, repo=repo, revision=revision, path=path)


async def test_half_a_character_is_named(box: Box) -> None:
    with pytest.raises(ToolError, match=r"content holds \\ud800, half of a character"):
        await box.use(write_file, path="a.txt", content="b\ud800")
