"""git_status, git_diff, git_commit. Git only ever runs inside the sandbox, by git.sh.

So a repository's hooks, filters and configuration, whoever wrote them, can do no more than any command there.
"""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from agent.approvals import LONGEST
from agent.errors import ToolError
from agent.language import translated
from agent.sandbox.bubblewrap import REPOS, WriteAccess
from agent.sandbox.files import SandboxPath
from agent.sandbox.output_buffer import truncate_middle
from agent.sandbox.sandbox import bash_script
from agent.tools.tool import Call, Output, tool
from backend.protocol import Phrase

SECONDS = 60
ABSENT, CHANGED, NOTHING, NO_COMMITS = 44, 45, 46, 47  # exit codes of git.sh
PREVIEW_BYTES = 6000  # of a diff that is too long to be read

# In the head of a file's diff; lines of content begin with a sign.
NEW_SUBMODULE = re.compile(r"^new (?:file )?mode 160000$", re.MULTILINE)

MESSAGES = {
    NOTHING: "There is nothing to commit, the working tree is clean.",
    CHANGED: "Nothing was committed: the changes are no longer those that were approved.",
    NO_COMMITS: "There are no commits yet; without a revision the uncommitted changes are shown.",
}


@tool
async def git_status(
    call: Call, repo: Annotated[str, Field(description="folder of the repository")]
) -> Output:
    """Branch and changed files of a repository."""
    branch, *entries = (await run_git(call, repo, "status")).split("\0")
    name = re.sub(r"^No commits yet on (.*)", r"\1 (no commits yet)", branch.removeprefix("## "))
    lines = changed_files(entries) or ["nothing to commit, working tree clean"]
    return await bounded_output(call, "\n".join([f"branch {name}", *lines]))


def changed_files(entries: Sequence[str]) -> list[str]:
    """A line for each file. For a renamed or copied one the next entry is its old name."""
    lines, left = [], iter(entry.replace("\n", "?") for entry in entries)
    for entry in left:
        if not entry:
            continue
        if entry[2:3] == " " and ("R" in entry[:2] or "C" in entry[:2]):
            entry = f"{entry[:3]}{next(left, '')} -> {entry[3:]}"
        lines.append(entry)
    return lines


@tool
async def git_diff(call: Call, repo: str, revision: str = "", path: str = "") -> Output:
    """Uncommitted changes, or those of a revision or range."""
    if revision.startswith("-"):
        raise ToolError(f"{revision} is not a revision. Use a branch, a commit or a range A..B.")
    paths = [path_in_repo(call, repo, path)] if path else []
    # As in git, HEAD means what has changed since; where nothing has, it means the last commit.
    text = await run_git(call, repo, "diff", revision.removeprefix("HEAD") and revision, *paths)
    if revision == "HEAD" and not text.strip("\n"):
        text = await run_git(call, repo, "diff", revision, *paths)
    return await bounded_output(call, text.strip("\n") or "no changes")


@tool
async def git_commit(call: Call, repo: str, message: str, files: list[str] | None = None) -> Output:
    """Commit the given files, or all changes."""
    if not message.strip():
        raise ToolError("message is empty.")
    chosen = [path_in_repo(call, repo, file) for file in files or []]
    approved = await approved_changes(call, repo, message, chosen)
    text = await run_git(call, repo, "commit", approved, message, *chosen, access="commit")
    return Output(text.strip("\n"))


async def approved_changes(call: Call, repo: str, message: str, files: Sequence[str]) -> str:
    """The SHA-256 line of the changes that an owner allowed; empty in the workspace, where nobody is asked."""
    place = resolve(call, repo)
    if not place.repo:
        return ""
    if not call.sandbox.config.repos[place.repo].write:
        raise ToolError(
            f"/repos/{place.repo} is read-only, so nothing can be committed to it. "
            "Its owner can allow it with write = true in the configuration."
        )
    told = await run_git(call, repo, "preview", *files, exact=True)
    digest, _, preview = told.partition("\n")
    if NEW_SUBMODULE.search(preview):
        raise ToolError(
            "Nothing was committed: a folder in it is a repository of its own, whose settings the "
            "owner's git would run. Remove that folder's .git, or name the files to commit."
        )
    await call.leaves(Phrase("The commit"), preview)
    shown = preview
    if len(preview) > LONGEST and not await call.taints():
        shown, _ = truncate_middle(preview, PREVIEW_BYTES)  # in a touched chat it is denied instead
    await call.approve(
        f"{translated('Commit to {repo}:').format(repo=place.repo)} {message}\n\n{shown}",
        scope=f"commit:{place.repo}",
    )
    return digest


async def run_git(
    call: Call,
    repo: str,
    command: str,
    *arguments: str,
    access: WriteAccess = "none",
    exact: bool = False,
) -> str:
    """The output of a command of git.sh; `exact`: with invisible characters, to be shown to an owner."""
    place = resolve(call, repo, reading=access == "none")
    folder = f"{place.top}/{place.path}".rstrip("/")
    await call.reads(place)
    result = await call.sandbox.run_internal(
        [*bash_script("tools/git.sh"), command, folder, *arguments],
        seconds=SECONDS,
        access=access,
        repos=await call.repos_shown([place.repo]),
        exact=exact,
    )
    if result.exit_code == ABSENT:
        there = [*call.sandbox.config.repos, *result.output.splitlines()]
        names = ", ".join(name for name in there if name != place.repo)
        known = f"There are: {names}." if names else "There is none."
        raise ToolError(f"There is no git repository at {folder}. {known}")
    if result.exit_code:
        message, _ = truncate_middle(result.output.strip(), 1000)
        raise ToolError(
            MESSAGES.get(result.exit_code, message or f"git ended with {result.exit_code}.")
        )
    return result.output + result.reason


def resolve(call: Call, repo: str, *, reading: bool = False) -> SandboxPath:
    """The place of a repository; a configured name goes before a path of the same name. `reading` as in Files.resolve."""
    known = call.sandbox.config.repos
    path = f"{REPOS}/{repo}" if repo in known else repo
    return call.sandbox.files.resolve(path, reading=reading)


def path_in_repo(call: Call, repo: str, file: str) -> str:
    """A file's path in its repository, also for one that is relative to /workspace or begins with /repos/NAME/."""
    place = resolve(call, repo, reading=True)
    own = f"{place.path}/" if place.path else ""
    if file.startswith("/") or (own and file.startswith(own)):
        return call.sandbox.files.resolve(file).path.removeprefix(own) or "."
    return file


async def bounded_output(call: Call, text: str) -> Output:
    shown, cut = truncate_middle(text, call.output_limit)
    note = "\n[cut; give a path to see one file]" if cut else ""
    return Output(shown + note)
