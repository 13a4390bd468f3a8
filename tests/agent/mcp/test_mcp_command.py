"""`mcp` in the agent's shell, over a server in a sandbox of its own."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from agent.budgets import WORDS, CallBudget, DailyBudgets
from agent.errors import UsageError
from agent.mcp.config import ServerConfig
from agent.mcp.tools import ServerTool, arguments, content_of
from agent.tools.bash import bash
from fakes.cases import cases
from fakes.sandbox_box import Box
from fakes.tool_servers import FakeServers, calls, mcp
from fakes.words import saying


async def test_a_tool_is_found_and_called_in_three_steps(servers: FakeServers) -> None:
    box = await servers.open()
    assert "tea  not used yet" in await mcp(box, "")
    assert "add a b [unit] [exact]" in await mcp(box, "tea")
    asked, scope = box.asked[0]
    assert scope == "mcp-server:tea" and '"Add two numbers."' in asked
    assert await mcp(box, "tea add a=2 b=3 tags=x tags=y exact=yes ratio=null") == (
        '5 {"a": 2, "b": 3, "exact": true, "ratio": null, "tags": ["x", "y"]}'
    )
    assert [scope for _, scope in box.asked[1:]] == ["mcp:tea/add"]
    assert box.strangers == ["MCP server tea"]
    assert (await mcp(box, "")).startswith("tea  add, say, wipe")


async def test_help_shows_types_limits_and_defaults(servers: FakeServers) -> None:
    box = await servers.open()
    assert (await mcp(box, "tea add --help")).splitlines() == [
        "usage: mcp tea add a= b= [unit=] [exact=] [tags=] [more=] [ratio=]",
        "       or all arguments as JSON on standard input",
        "",
        "Add two numbers.",
        "  a  (integer, required) the first",
        "  b  (integer, at least 0, required)",
        "  unit  (one of apples, pears, default apples)",
        "  exact  (boolean)",
        "  tags  (list of string)",
        "  more  (object)",
        "  ratio  (number or null)",
    ]


ADVICE = {
    "tea add a=x b=3": "a must be integer, and is 'x'",
    "tea add a=1 c=3": "c is no argument of add",
    "tea add a=1 exac=true": "did you mean exact?",
    "tea add a=1": "b is missing",
    "tea add a=1 b=2 unit=figs": "unit is one of apples, pears",
    "tea add a=1 b=2 a=3": "a is given twice",
    "tea add a b": "'a' is no key=value",
    "tea ad a=1": "Did you mean add?",
    "te add": "there are tea",
    "tea add - <<< '[1]'": "must be a JSON object",
    "tea add - <<< '{'": "not JSON",
    "tea add <<< '{\"a\": 1}'": "b is missing",
}


async def test_wrong_arguments_get_advice_and_reach_no_server(servers: FakeServers) -> None:
    box = await servers.open()
    answers = (await mcp(box, "; mcp ".join(ADVICE))).split("\nmcp: ")
    told = [answer for answer in answers if not answer.startswith("usage")]
    assert len(told) == len(ADVICE)
    for advice, answer in zip(ADVICE.values(), told, strict=True):
        assert advice in answer
    assert calls(servers) == []


MODE, COUNT = {"$ref": "#/$defs/Mode"}, {"$ref": "#/$defs/Count"}
REFERRED: list[tuple[dict[str, Any], str, Any]] = [
    ({"anyOf": [MODE, {"type": "null"}]}, "fast", "fast"),
    ({"anyOf": [COUNT, {"type": "null"}]}, "5", 5),
    ({"oneOf": [{"type": "boolean"}, COUNT]}, "5", 5),
    ({"anyOf": [{"type": "null"}, MODE]}, "slow", "slow"),
    ({**MODE, "description": "How."}, "quick", "x is one of fast, slow"),
    ({"allOf": [MODE], "default": "fast"}, "quick", "x is one of fast, slow"),
    ({"allOf": [COUNT], "description": "How many."}, "many", "x must be integer"),
    ({"type": "array", "items": MODE}, "quick", "x is one of fast, slow"),
    ({"type": "array", "items": COUNT}, "5", [5]),
    ({"type": "array", "items": COUNT}, "many", "x must be integer"),
    ({"$ref": "#/$defs/None"}, "5", 5),
    ({"allOf": 5, "anyOf": "x", "items": [5]}, "5", 5),
    ({"type": "number"}, "nan", "x must be number"),
    ({"type": "number"}, "-inf", "x must be number"),
    ({"type": "integer"}, "9" * 400, int("9" * 400)),
]


@cases(("schema", "text", "given"), REFERRED)
@pytest.mark.parametrize("whole", [False, True])
def test_what_a_schema_refers_to_counts(
    schema: dict[str, Any], text: str, given: Any, whole: bool
) -> None:
    mode, count = {"type": "string", "enum": ["fast", "slow"]}, {"type": "integer"}
    takes = {"type": "object", "properties": {"x": schema}}
    own: dict[str, Any] = {"$ref": "#/$defs/Args"} if whole else takes
    all_of_it = {**own, "$defs": {"Mode": mode, "Count": count, "Args": takes}}
    tool = ServerTool("s", "t", json.dumps({"name": "t", "inputSchema": all_of_it}))
    if isinstance(given, str) and given.startswith("x "):
        with pytest.raises(UsageError, match=given):
            arguments(tool, [f"x={text}"])
    else:
        assert arguments(tool, [f"x={text}"]) == {"x": given}
    assert ("How" in tool.help) == ("description" in schema)


X, Y = {"properties": {"x": COUNT}}, {"properties": {"y": {"type": "string"}}, "required": ["y"]}
A, B = ({"properties": {"kind": {"const": each}, each: {"type": "integer"}}} for each in "ab")
REF = {"$ref": "#/$defs/X"}


@cases(
    ("schema", "words", "given"),
    [
        ({"anyOf": [X, Y]}, "x=5", {"x": 5}),
        ({"anyOf": [X, Y]}, "y=5", {"y": "5"}),
        ({"oneOf": [X, Y]}, "x=5", {"x": 5}),
        ({"allOf": [X, Y]}, "x=5 y=5", {"x": 5, "y": "5"}),
        ({"anyOf": [REF, Y]}, "x=5", {"x": 5}),
        ({"oneOf": [Y, REF]}, "x=5 y=5", {"x": 5, "y": "5"}),
        ({"type": "object", "anyOf": [X, Y]}, "y=5", {"y": "5"}),
        ({**Y, "oneOf": [X, {"properties": {"z": {}}}]}, "y=5 z=5", {"y": "5", "z": 5}),
        ({"oneOf": [A, B]}, "kind=a a=1", {"kind": "a", "a": 1}),
        ({"oneOf": [A, B]}, "kind=b b=1", {"kind": "b", "b": 1}),
        ({"anyOf": [A, X, B]}, "kind=b x=1", {"kind": "b", "x": 1}),
        ({"anyOf": [7, {"properties": 7}, X]}, "x=5", {"x": 5}),
    ],
)
def test_arguments_that_only_an_option_has_are_taken(
    schema: dict[str, Any], words: str, given: dict[str, Any]
) -> None:
    said = {**schema, "$defs": {"X": X, "Count": {"type": "integer"}}}
    tool = ServerTool("s", "t", json.dumps({"name": "t", "inputSchema": said}))
    assert arguments(tool, words.split()) == given
    assert all(f"{name}=" in tool.help for name in given)


SIGNED = bytes(range(256))
IN_BASE64 = base64.b64encode(SIGNED).decode()


@cases(
    ("kind", "data", "ending"),
    [
        ("image/png", IN_BASE64, ".png"),
        ("image/jpg", IN_BASE64, ".jpg"),
        ("IMAGE/PNG", f"data:image/png;base64,{IN_BASE64}", ".png"),
        ("audio/wav", base64.urlsafe_b64encode(SIGNED).decode(), ".wav"),
        ("image/webp; q=1", IN_BASE64.rstrip("="), ".webp"),
        ("audio/flac", "\n".join([IN_BASE64[:76], IN_BASE64[76:]]), ".flac"),
        ("application/x-yaml", IN_BASE64, ".bin"),
        ("application/octet-stream", IN_BASE64, ".bin"),
        ("../x", IN_BASE64, ".x"),
        ("a/../../x", IN_BASE64, ".bin"),
        ("", IN_BASE64, ".bin"),
    ],
)
def test_files_come_whole_under_their_kind(kind: str, data: str, ending: str) -> None:
    block = {"type": "image", "data": data, "mimeType": kind}
    assert content_of([block], "tea")[1] == {f"tea-1{ending}": SIGNED}


async def test_results_are_text_json_and_files(servers: FakeServers) -> None:
    box = await servers.open()
    assert await mcp(box, "tea picture; cat *.png") == (
        "[8 bytes in /workspace/tea-picture-1.png]\nhere\n�PNG one".replace("�", "\ufffd")
    )
    assert json.loads(await mcp(box, "tea facts")) == {"tea": "grün"}
    assert await mcp(box, "tea refuse") == "mcp: there is no tea\nexit code: 1"
    assert [taint.source for taint in await box.sandbox.files.taints()]


async def test_what_a_server_is_given_counts_with_the_days_bytes(servers: FakeServers) -> None:
    box, daily = (
        await servers.open(),
        DailyBudgets(servers.store.budgets, dict.fromkeys(WORDS, 999)),
    )
    box.budget = CallBudget(daily, "cli", box._approve, "mcp")
    assert await mcp(box, f"tea say text={'x' * 90}") == "x" * 90
    used = {one.kind: one.used for one in await servers.store.budgets.used("cli", daily.today())}
    assert used["bytes"] == len(json.dumps({"text": "x" * 90}))
    await mcp(box, f"tea say text={'x' * 900}")
    assert box.asked[-1][1] == "budget:bytes"


async def test_resources_prompts_and_progress(servers: FakeServers) -> None:
    box = await servers.open()
    assert "note://1 first" in await mcp(box, "tea read")
    assert "the note" in await mcp(box, "tea read note://1")
    assert "greet who" in await mcp(box, "tea prompt")
    assert await mcp(box, "tea prompt greet who=Ada") == "user: Greet Ada"
    assert await mcp(box, "tea slow") == "done"
    assert box.progress == ["tea: 1/2 tea", "tea: 2/2 tea"]


async def test_the_server_stays_and_each_chat_has_its_own(servers: FakeServers) -> None:
    box = await servers.open()
    pid = 'tea run code=\'os.getpid(), setattr(os, "told", getattr(os, "told", 0) + 1), os.told\''
    first, again = await mcp(box, pid), await mcp(box, pid)
    assert first.endswith(", 1)") and again.endswith(", 2)")
    other = Box(await servers.sandboxes.of("other"), chat="other", servers=box.servers)
    assert (await mcp(other, pid)).endswith(", 1)")
    assert box.servers and len(box.servers.running) == 2


async def test_asking_follows_allow_and_what_a_tool_says_of_itself(servers: FakeServers) -> None:
    """A hint raises a wall, and lowers none: add says that it only reads, wipe that it destroys."""
    box = await servers.open(allow=["say", "wipe"])
    for tool in ("say text=x", "add a=1 b=2", "wipe"):
        await mcp(box, f"tea {tool}")
    assert [scope for _, scope in box.asked] == [
        "mcp-server:tea",
        "mcp:tea/add",
        "mcp-destructive:tea/wipe",
    ]
    assert box.asked[1][0] == saying("call add", "MCP server tea", '\n\n{\n "a": 1,\n "b": 2\n}')


async def test_an_owner_reads_what_is_there_and_runs(servers: FakeServers) -> None:
    box = await servers.open(env_file="/dev/null")
    assert box.servers
    (line,) = await box.servers.report()
    assert line == saying("env_file", "): no tool allowed")
    await mcp(box, "tea")
    (line,) = await box.servers.report()
    assert line == saying(" 1 running", "env_file", "): add, say, wipe")


async def test_without_servers_there_is_no_such_command(servers: FakeServers) -> None:
    box = Box(await servers.sandboxes.of("cli"))
    assert "mcp" not in await box.text(bash, command="cat /commands.txt")
    assert "There is no MCP server" in await mcp(box, "")
    box = await servers.open()
    assert "Tools of other programs: tea." in await box.text(bash, command="cat /commands.txt")


async def test_an_owner_sees_descriptors_once_and_again_for_another_program(
    servers: FakeServers,
) -> None:
    await mcp(await servers.open(), "tea")
    again = await servers.open()
    await mcp(again, "tea")
    assert again.asked == []
    other = await servers.open("pulled")
    await mcp(other, "tea")
    assert [scope for _, scope in other.asked] == ["mcp-server:tea"]


def test_variables_are_read_from_lines(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("# no\nA=1\nexport B = 'two words'\n\nnonsense\nX-Api-Key=\"k\"\n")
    config = ServerConfig("x", env_file=str(path))
    assert config.variables() == {"A": "1", "B": "two words", "X-Api-Key": "k"}


def test_folders_get_names_of_their_own() -> None:
    mounts = ServerConfig("x", folders=("/srv/a b", "/mnt/a b:rw", "/")).mounts
    assert {name: (str(repo.path), repo.write) for name, repo in mounts.items()} == {
        "a-b": ("/srv/a b", False),
        "a-b-2": ("/mnt/a b", True),
        "folder": ("/", False),
    }
