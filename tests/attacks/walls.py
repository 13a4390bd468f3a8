"""Each wall is taken down once, by replacing the code that builds it, and its attacks must get through.

    python -m tests.attacks --walls [WALL ...]    prints a table; exit code 1 where a wall is not missed

A wall that nobody misses is one whose attacks have become harmless, or never reached it. Each is tried in a
process of its own: `python -m tests.attacks.walls WALL` prints what got through, one to a line. Where two
walls stand behind each other, both are taken down. What no attack of the suite reaches by itself (a late press, a
ledger that was changed) is attacked by tests, which pass with the wall and fail without it.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent import approvals, pictures, trust
from agent.approvals import ApprovalRequest
from agent.leaks import LeakDetector
from agent.mcp import connection
from agent.sandbox import (
    bubblewrap,
    bwrap_process,
    files,
    gitdirs,
    hosts,
    openat2,
    output_buffer,
    privileges,
    sandbox,
    sandbox_config,
    seccomp,
)
from agent.sandbox.output_buffer import visible
from agent.shell.broker import Broker
from agent.store import approvals as store_approvals
from agent.store import ledger, set_aside
from agent.store.approvals import ApprovalTable
from agent.store.usage import BudgetTable
from agent.summary import git_facts
from agent.summary.git_facts import CommitRange, Git
from agent.tools import tool as tools
from agent.tools.registry import known
from agent.turn.conversation import StoredJournal
from agent.web import fetch
from agent.web.browser import Browser
from bot import approval_question, attachments
from bot.commands import table as commands
from bot.telegram import incoming_message, message_calls
from fakes.obedient_bot import Owner
from tests.attacks.attack import Attack
from tests.attacks.cases import ATTACKS
from tests.attacks.cases.trust import SHOWN, Try, attempts
from tests.attacks.stage import WRITABLE
from tests.attacks.suite import IdleSandboxError, against_sandbox

WALL_SECONDS = 600.0  # for the attacks of one wall


def without(*flags: str) -> None:
    """bubblewrap's arguments without the first of each of these."""

    def fewer(layout: bubblewrap.Layout, fds: bubblewrap.InheritedFds) -> list[str]:
        given = bubblewrap.arguments(layout, fds)
        for flag in flags:
            given.remove(flag)
        return given

    setattr(bwrap_process, "arguments", fewer)


async def nothing(*_: object, **__: object) -> list[Any]:
    """In place of a method that records, sends or gives something."""
    return []


async def every_repository(call: tools.Call, _: object) -> Collection[str]:
    return call.sandbox.config.repos.keys()


# -- walls of the sandbox -----------------------------------------------------


def no_network_namespace() -> None:
    without("--unshare-net")


def no_process_namespace() -> None:
    without("--unshare-pid")


def no_system_call_filter() -> None:
    everything = seccomp.Instruction(seccomp.RETURN, seccomp.ALLOW).packed()
    setattr(seccomp, "program", lambda **_: everything)
    without("--disable-userns")


def the_hosts_etc() -> None:
    def shown(layout: bubblewrap.Layout, fds: bubblewrap.InheritedFds) -> list[str]:
        return bubblewrap.arguments(replace(layout, etc="/etc"), fds)

    setattr(bwrap_process, "arguments", shown)


def repositories_writable() -> None:
    mounts = bubblewrap.repo_arguments
    setattr(bubblewrap, "repo_arguments", lambda repo: mounts(replace(repo, write=True)))


def git_directories_open() -> None:
    setattr(gitdirs.Guard, "mounts", lambda self, *, commit: ([], []))
    setattr(gitdirs.Guard, "bare", False)
    setattr(gitdirs, "disable_new", lambda *_, **__: [])


def no_look_afterwards() -> None:
    setattr(gitdirs, "disable_new", lambda *_, **__: [])


def paths_anywhere() -> None:
    def follow(root: int, path: str, flags: int, **_: int) -> int:
        return os.open(path or ".", flags | openat2.OPEN_FLAGS, dir_fd=root)

    setattr(openat2, "open_beneath", follow)
    setattr(privileges.UnprivilegedUser, "beneath", privileges.CurrentUser.beneath)


def output_as_it_is() -> None:
    setattr(output_buffer, "clean", lambda text: text)


def output_without_bound() -> None:
    setattr(output_buffer, "truncate_middle", lambda text, limit: (text, False))
    setattr(output_buffer.OutputBuffer, "excerpt", lambda self, limit: (self.raw.decode("utf-8", "replace"), False))  # fmt: skip


def time_without_bound() -> None:
    limit = sandbox.TimeLimit.__init__
    setattr(sandbox.TimeLimit, "__init__", lambda self, seconds, process: limit(self, 9 * seconds, process))  # fmt: skip


def no_limits() -> None:
    async def unseeing(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    setattr(sandbox_config, "watch_usage", unseeing)
    setattr(sandbox_config, "prlimit", lambda limits: [])


# -- walls of trust, in the process of the bot --------------------------------


def pages_unmarked() -> None:
    fetch = known()["web_fetch"].function

    async def unmarked(call: tools.Call, **arguments: Any) -> tools.Output:
        return await fetch(replace(call, strangers=[]), **arguments)

    object.__setattr__(known()["web_fetch"], "function", unmarked)


def messages_unmarked() -> None:
    setattr(incoming_message, "strangers_text", lambda *_: [])


def files_unmarked() -> None:
    def owned(value: Any, **changes: Any) -> Any:
        return replace(value, **{k: v for k, v in changes.items() if k != "stranger"})

    setattr(attachments, "replace", owned)
    setattr(files.Files, "mark", nothing)


def repositories_unmarked() -> None:
    setattr(sandbox.Sandbox, "repos_seen", lambda self, command: [])
    setattr(tools.Call, "repos_shown", every_repository)
    setattr(tools.Call, "reads", nothing)


def loaded_files_unmarked() -> None:
    setattr(files.Files, "mark_for_now", nothing)


def commands_unmarked() -> None:
    setattr(Broker, "stranger", nothing)


def any_address() -> None:
    setattr(Browser, "needs_question", nothing)


def forgets_at_once() -> None:
    setattr(StoredJournal, "taints", nothing)


def never_asks() -> None:
    for act, found in dict(trust.ACTS).items():
        trust.ACTS[act] = replace(found, touched="never")  # type: ignore[index]


def repos_writable_when_touched() -> None:
    run = sandbox.Sandbox.run

    async def writing(self: sandbox.Sandbox, command: Any, **given: Any) -> sandbox.CommandResult:
        return await run(self, command, **{**given, "write_repos": True})

    setattr(sandbox.Sandbox, "run", writing)


def any_host() -> None:
    setattr(hosts.Hosts, "allow", lambda self, host, port: True)


def secrets_unseen() -> None:
    setattr(LeakDetector, "find", lambda self, text: None)


def questions_cut() -> None:
    setattr(approval_question, "send_whole", nothing)


def questions_raw() -> None:
    setattr(approval_question, "visible", lambda text: text)


def previews() -> None:
    setattr(message_calls, "NO_PREVIEW", None)


# -- walls that tests attack --------------------------------------------------


def questions_for_ever() -> None:
    decide = ApprovalTable.decide

    async def early(self: ApprovalTable, id: str, decision: Any, _: float, by: str = "") -> Any:
        return await decide(self, id, decision, 0.0, by)

    setattr(ApprovalTable, "decide", early)


def questions_outlive_stop() -> None:
    setattr(store_approvals, "withdraw", nothing)


def presses_for_anything() -> None:
    setattr(ApprovalRequest, "intact", True)


def anybody_presses() -> None:
    setattr(commands, "OWNERS_ONLY", ())


def grants_in_touched_chats() -> None:
    setattr(approvals, "asks", lambda scope, *, touched: trust.asks(scope, touched=False))


def grants_for_a_host() -> None:
    setattr(hosts.HostRequest, "scope", property(lambda request: f"network:{request.place}"))


def lists_for_everything() -> None:
    setattr(hosts.ListedHost, "covers", lambda entry, request: entry.names(request.host, request.port))  # fmt: skip


def rows_without_a_chain() -> None:
    setattr(ledger.LedgerRow, "follows", lambda row, before: True)


def no_head_is_told() -> None:
    async def none(_: ledger.LedgerTable) -> str:
        return ""

    setattr(ledger.LedgerTable, "told", none)


def acts_unrecorded() -> None:
    for module in (ledger, store_approvals):
        setattr(module, "record", nothing)


def no_budgets() -> None:
    setattr(BudgetTable, "reserve", nothing)


def pages_without_bound() -> None:
    setattr(fetch, "MOST_BYTES", 1 << 40)


def messages_without_bound() -> None:
    setattr(connection, "MOST_VALUES", 1 << 40)


def pictures_without_bound() -> None:
    setattr(pictures, "MOST_SEGMENTS", 1 << 40)


def records_by_lines() -> None:
    """As they were: whatever a text takes for the end of a line ends a record."""
    collect = git_facts.collect

    async def split(git: Git, path: str, span: CommitRange) -> git_facts.RepoFacts:
        async def lines(argv: Sequence[str]) -> bytes:
            return "\0".join((await git(argv)).decode("utf-8", "replace").splitlines()).encode()

        return await collect(lines, path, span)

    setattr(git_facts, "collect", split)


def nothing_set_aside() -> None:
    setattr(set_aside, "_set_aside", nothing)


@dataclass(frozen=True)
class Wall:
    """`areas` are attacks on the sandbox, `tries` injections before the bot, `tests` what pytest is to run;
    `named`: only attacks with these words in their name, `seen`: only where this is seen of them."""

    name: str
    down: Callable[[], None]
    areas: Sequence[str] = ()
    named: str = ""
    tries: Sequence[Try] = ()
    owner: Owner = "denies"
    tests: Sequence[str] = ()
    seen: str = ""

    @property
    def attacks(self) -> list[Attack]:
        return [a for a in ATTACKS if a.area in self.areas and self.named in a.name]


WALLS = (
    Wall("a network of its own", no_network_namespace, ["sockets"]),
    Wall("processes of its own", no_process_namespace, ["environment", "processes"]),
    Wall("the system call filter", no_system_call_filter, ["kernel"]),
    Wall("an /etc of its own", the_hosts_etc, ["reading outside"], "the host's own /etc"),
    Wall("repositories that are read-only", repositories_writable, ["writing outside"], "repository"),
    *(Wall(f"git directories that are closed, in {repo}", git_directories_open, ["git"], f"the owner's git in {repo}:", seen="git ran it") for repo in WRITABLE),
    *(Wall(f"the same before a push, in {repo}", git_directories_open, ["git"], f"the owner's push in {repo}:", seen="git ran it") for repo in WRITABLE),
    Wall("the look for new git directories", no_look_afterwards, ["git"], "the owner's git", seen="git ran it"),
    Wall("the same before a push", no_look_afterwards, ["git"], "the owner's push", seen="git ran it"),
    Wall("paths that stay beneath", paths_anywhere, ["file tools"], "symlink"),
    Wall("output without control characters", output_as_it_is, ["terminal"]),
    Wall("output with a bound", output_without_bound, ["limits"], "a flood"),
    Wall("time with a bound", time_without_bound, ["limits"], "time"),
    Wall("limits of processes, memory, files", no_limits, ["limits"], "many"),
    Wall("pages are a stranger's", pages_unmarked, tries=[Try("a page", 0)]),
    Wall("messages of others are a stranger's", messages_unmarked, tries=[Try("a forwarded message", 0)]),
    Wall("files that are sent are a stranger's", files_unmarked, tries=[Try("a document and its name", 0)]),
    Wall("repositories are a stranger's", repositories_unmarked, tries=[Try("a file of a repository", 0), Try("names of files", 1)]),
    Wall("what a command loads is a stranger's", loaded_files_unmarked, tries=[Try("a page that a command kept", 0)]),
    Wall("what commands of the shell give is a stranger's", commands_unmarked, tries=[Try("results of a search", 0), Try("what an MCP server says of its tools", 1)]),
    Wall("addresses that nobody wrote ask", any_address, tries=[Try("a page", 0)]),
    Wall("it stays so after a restart", forgets_at_once, tries=[Try("a page, in the turn after a restart", 0)]),
    Wall("what leaves or lasts asks", never_asks, tries=[Try("a page", 1)]),
    Wall("/repos is closed to touched commands", repos_writable_when_touched, tries=[Try("a page", 2)]),
    Wall("the list of hosts", any_host, tries=[Try("a page", 3)], owner=SHOWN),
    Wall("no secret leaves", secrets_unseen, tries=[Try("a page", 7)], owner=SHOWN),
    Wall("a question comes with the whole step", questions_cut, tries=[Try("a page", 4)], owner=SHOWN),
    Wall("a question shows what is hidden", questions_raw, tries=[Try("a page", 5)], owner=SHOWN),
    Wall("answers are not looked up", previews, tries=[Try("a page", 6)]),
    Wall("questions that expire", questions_for_ever, tests=["agent/turn/test_approval_table.py::test_a_press_after_the_expiry_counts_for_nothing"]),
    Wall("questions that /stop withdraws", questions_outlive_stop, tests=["agent/turn/test_approval_table.py::test_a_press_after_stop_counts_for_nothing"]),
    Wall("a press is for what was shown", presses_for_anything, tests=["agent/store/test_tables.py::test_a_question_is_decided_over_its_own_bytes"]),
    Wall("owners alone press", anybody_presses, tests=["bot/telegram/test_approvals.py::test_only_owners_press_in_a_group"]),
    Wall("no permission stands in a touched chat", grants_in_touched_chats, tests=["agent/turn/test_approvals.py::test_after_strangers_text_a_standing_permission_asks_again"]),
    Wall("a permission is for one request", grants_for_a_host, tests=["agent/sandbox/test_grants.py::test_a_touched_chat_is_asked_about_reading_as_narrowly"]),
    Wall("the list is for reading", lists_for_everything, tests=["agent/sandbox/test_grants.py::test_what_it_does_not_have_asks"]),
    Wall("the chain of the ledger", rows_without_a_chain, tests=["agent/store/test_ledger.py::test_tampering_shows"]),
    Wall("the ledger's head that was told", no_head_is_told, tests=["agent/store/test_ledger.py::test_what_was_told_and_is_gone_is_told"]),
    Wall("acts are in the ledger", acts_unrecorded, tests=["bot/telegram/test_ledger.py::test_questions_decisions_and_permissions"]),
    Wall("budgets, and what is frozen", no_budgets, tests=["agent/turn/test_budgets.py"]),
    Wall("pages with a bound", pages_without_bound, tests=["agent/web/test_fetch.py::test_a_bomb_is_cut"]),
    Wall("messages of MCP servers with a bound", messages_without_bound, tests=["agent/mcp/test_hostile_servers.py::test_a_message_of_too_many_values_is_not_read"]),
    Wall("pictures with a bound", pictures_without_bound, tests=["agent/test_pictures.py::test_of_a_jpeg_no_more_than_a_thousand_segments_are_looked_at"]),
    Wall("facts of repositories end with NUL", records_by_lines, tests=["agent/summary/test_hostile_repositories.py::test_every_number_is_git_s"]),
    Wall("what crashes each time is set aside", nothing_set_aside, tests=["bot/test_intake.py", "agent/store/test_set_aside.py::test_the_third_crash_at_a_row_sets_it_aside"]),
)  # fmt: skip

TESTS = Path(__file__).parents[2] / "tests"
DOWN = "VOLTAIRE_WALL_DOWN"  # a wall's name, for pytest_configure


def pytest_configure() -> None:
    """This module as a plugin of pytest: a wall is down before a test is read."""
    for wall in WALLS:
        if wall.name == os.environ.get(DOWN):
            wall.down()


def failing(wall: Wall, *, down: bool) -> list[str]:
    """The wall's tests that fail; RuntimeError where they did not run."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.attacks.walls", "--tb=no"]
    done = subprocess.run(
        [*command, *(str(TESTS / test) for test in wall.tests)],
        cwd=TESTS.parent,
        env={**os.environ, DOWN: wall.name if down else ""},
        capture_output=True,
        text=True,
    )
    if done.returncode > 1:  # no test failed or passed: it was none, or could not be read
        raise RuntimeError(done.stdout[-500:])
    return [line for line in done.stdout.splitlines() if line.startswith("FAILED")]


async def through(wall: Wall, folder: Path) -> list[str]:
    """What gets through once the wall is down. What has broken the stage leaves a fresh one."""
    if wall.tests:
        return [] if failing(wall, down=False) else failing(wall, down=True)
    if wall.tries:
        down = f"from tests.attacks import walls\nwalls.{wall.down.__name__}()"
        return await attempts(folder, wall.tries, wall.owner, down)
    wall.down()
    found, left = [], wall.attacks
    while left:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as base:
            try:
                # Closed before the next stage is built: both are of this process.
                async with aclosing(against_sandbox(Path(base), left)) as outcomes:
                    async for outcome in outcomes:
                        left = left[left.index(outcome.attack) + 1 :]
                        if outcome.success and wall.seen in outcome.success:
                            attack = outcome.attack
                            found.append(f"{attack.area}: {attack.name}: {outcome.success}")
                            break
            except IdleSandboxError:  # at the end, on a stage where nothing works any more
                return found
    return found


def table(names: Sequence[str], folder: Path) -> int:
    """Print what got through without each of these walls (all for none); 1 where nothing did."""
    unmissed = 0
    print("| without | what got through | for instance |\n|---|---|---|")
    for wall in WALLS:
        if names and wall.name not in names:
            continue
        command = [sys.executable, "-m", "tests.attacks.walls", wall.name, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WALL_SECONDS)
        found = [] if done.returncode else done.stdout.splitlines()
        unmissed += not found
        instance = found[0] if found else (done.stderr.strip().splitlines() or ["NOTHING"])[-1]
        print(f"| {wall.name} | {len(found)} | {instance} |", flush=True)
    print(f"{unmissed} walls are not missed" if unmissed else "every wall is missed")
    return int(bool(unmissed))


def main() -> None:
    parser = argparse.ArgumentParser(description="Take one wall down; print what gets through.")
    parser.add_argument("wall", choices=[wall.name for wall in WALLS])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    [wall] = [wall for wall in WALLS if wall.name == options.wall]
    with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
        for line in asyncio.run(through(wall, Path(folder))):
            print(visible(" ".join(line.split())))


if __name__ == "__main__":
    main()
