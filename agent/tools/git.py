"""git_status, git_diff, git_commit. Git only ever runs inside the sandbox.

So a repository's hooks, filters and configuration, whoever wrote them, can do no
more than any command there. The options are for stable output.
"""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from agent.errors import ToolError
from agent.sandbox.files import SandboxPath
from agent.sandbox.layout import REPOS, WriteAccess
from agent.sandbox.output_buffer import truncate_middle
from agent.tools.tool import Call, Output, tool

_SECONDS = 60
_ABSENT = 44  # exit code: no repository
_CHANGED = 45  # exit code: the changes are not those that were approved
_NOTHING = 46  # exit code: nothing to commit
_SHOWN = 6000  # bytes of a diff in a question to the owner

_GIT = "git --no-pager -c core.quotePath=false -c diff.external= -c protocol.allow=never"
_DIFF = "diff --no-ext-diff --no-textconv --no-color"

# Argument 1 of every script: the directory. What remains is relative to the top of its repository.
_ENTER = f"""
cd -- "$1" 2>/dev/null || exit {_ABSENT}
shift
top=$(git rev-parse --show-toplevel 2>/dev/null) && cd -- "$top" || exit {_ABSENT}
base=HEAD
git rev-parse --quiet --verify HEAD > /dev/null || base=$(git hash-object -t tree /dev/null)
"""

_STATUS = f"""{_ENTER}
export GIT_OPTIONAL_LOCKS=0
{_GIT} status --short --branch --untracked-files=all
"""

# Arguments: a revision, a range or nothing; then paths.
_CHANGES = f"""{_ENTER}
export GIT_OPTIONAL_LOCKS=0
revision=$1; shift
case $revision in
  "") {_GIT} {_DIFF} "$base" -- "$@" || exit
      new=$(git ls-files --others --exclude-standard -- "$@" | head -50)
      [ -z "$new" ] || printf '\nNew files, not in the diff:\n%s\n' "$new" ;;
  *..*) {_GIT} {_DIFF} --end-of-options "$revision" -- "$@" ;;
  *) {_GIT} show --no-ext-diff --no-textconv --no-color --date=short --first-parent -m \\
       --format='commit %h, %an, %ad: %s' --end-of-options "$revision" -- "$@" ;;
esac
"""

# What a commit would hold, without writing into the repository. Arguments: files, or none for all.
_PREVIEW = f"""
objects=$(git rev-parse --path-format=absolute --git-path objects)
mkdir -p /tmp/objects
preview() (
  export GIT_INDEX_FILE=/tmp/index GIT_OBJECT_DIRECTORY=/tmp/objects
  export GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects
  git read-tree "$base" && git add -A -- "${{@:-.}}" || exit
  {_GIT} {_DIFF} --cached --stat --patch "$base"
)
preview "$@" > /tmp/preview 2> /tmp/said || {{ cat /tmp/said /tmp/preview; exit 1; }}
[ -s /tmp/preview ] || exit {_NOTHING}
"""

_SHOW = f"""{_ENTER}{_PREVIEW}
sha256sum < /tmp/preview
cat /tmp/preview
"""

# Arguments: the SHA-256 of the approved preview or nothing, the message, then files.
_COMMIT = f"""{_ENTER}
approved=$1 message=$2; shift 2
{_PREVIEW}
[ -z "$approved" ] || [ "$(sha256sum < /tmp/preview)" = "$approved" ] || exit {_CHANGED}
git add -A -- "${{@:-.}}" || exit
[ $# = 0 ] || set -- -- "$@"
{_GIT} -c commit.gpgSign=false commit --no-verify --message="$message" "$@"
"""

# In the head of a file's diff; the lines of its text begin with a sign.
_NEW_SUBMODULE = re.compile(r"^new (?:file )?mode 160000$", re.MULTILINE)

_SAID = {
    _NOTHING: "There is nothing to commit, the working tree is clean.",
    _CHANGED: "Nothing was committed: the changes are no longer those that were approved.",
}


@tool
async def git_status(
    call: Call, repo: Annotated[str, Field(description="name in /repos, or path in /workspace")]
) -> Output:
    """Branch and changed files of a repository."""
    branch, *changed = (await _git(call, repo, _STATUS)).splitlines() or [""]
    lines = changed or ["nothing to commit, working tree clean"]
    return await _told(call, "\n".join([f"branch {_branch(branch)}", *lines]))


def _branch(line: str) -> str:
    name = line.removeprefix("## ")
    unborn = name.removeprefix("No commits yet on ")
    return name if unborn == name else f"{unborn} (no commits yet)"


@tool
async def git_diff(call: Call, repo: str, revision: str = "", path: str = "") -> Output:
    """Uncommitted changes, or those of a revision or range."""
    if revision.startswith("-"):
        raise ToolError(f"{revision} is not a revision. Use a branch, a commit or a range A..B.")
    paths = [_inside(call, repo, path)] if path else []
    said = await _git(call, repo, _CHANGES, revision, *paths)
    return await _told(call, said.strip("\n") or "no changes")


@tool
async def git_commit(call: Call, repo: str, message: str, files: list[str] | None = None) -> Output:
    """Commit the given files, or all changes."""
    if not message.strip():
        raise ToolError("message is empty.")
    chosen = [_inside(call, repo, file) for file in files or []]
    approved = await _approved(call, repo, message, chosen)
    said = await _git(call, repo, _COMMIT, approved, message, *chosen, access="commit")
    return Output(said.strip("\n"))


async def _approved(call: Call, repo: str, message: str, files: Sequence[str]) -> str:
    """The SHA-256 line of what an owner allowed; empty in the workspace, where nobody is asked."""
    spot = _spot(call, repo)
    if not spot.repo:
        return ""
    if not call.context.sandbox.config.repos[spot.repo].write:
        raise ToolError(
            f"/repos/{spot.repo} is read-only, so nothing can be committed to it. "
            "Its owner can allow it with write = true in the configuration."
        )
    digest, _, preview = (await _git(call, repo, _SHOW, *files)).partition("\n")
    if _NEW_SUBMODULE.search(preview):
        raise ToolError(
            "Nothing was committed: a folder in it is a repository of its own, whose settings the "
            "owner's git would run. Remove that folder's .git, or name the files to commit."
        )
    shown, _ = truncate_middle(preview, _SHOWN)
    await call.approve(f"Commit to {spot.repo}: {message}\n\n{shown}", scope=f"commit:{spot.repo}")
    return digest


async def _git(
    call: Call, repo: str, script: str, *arguments: str, access: WriteAccess = "none"
) -> str:
    spot = _spot(call, repo)
    folder = f"{spot.top}/{spot.path}".rstrip("/")
    ran = await call.context.sandbox.run_internal(
        ["/bin/bash", "-c", script, "git", folder, *arguments],
        seconds=_SECONDS,
        access=access,
    )
    if ran.exit_code == _ABSENT:
        raise ToolError(f"There is no git repository at {folder}. {_known(call)}")
    if ran.exit_code:
        said, _ = truncate_middle(ran.output.strip(), 1000)
        raise ToolError(_SAID.get(ran.exit_code, said or f"git ended with {ran.exit_code}."))
    return ran.output


def _spot(call: Call, repo: str) -> SandboxPath:
    """A configured name before a path of the same name."""
    known = call.context.sandbox.config.repos
    return call.context.sandbox.files.resolve(f"{REPOS}/{repo}" if repo in known else repo)


def _inside(call: Call, repo: str, file: str) -> str:
    """A file's path in its repository, also where it was given from /workspace or as /repos/NAME/..."""
    spot = _spot(call, repo)
    own = f"{spot.path}/" if spot.path else ""
    if file.startswith("/") or (own and file.startswith(own)):
        return call.context.sandbox.files.resolve(file).path.removeprefix(own) or "."
    return file


def _known(call: Call) -> str:
    names = ", ".join(call.context.sandbox.config.repos)
    return f"Configured are: {names}." if names else "None is configured; git init makes one."


async def _told(call: Call, text: str) -> Output:
    shown, cut = truncate_middle(text, call.context.sandbox.output_limit(call.output_bytes))
    note = "\n[cut; give a path to see one file]" if cut else ""
    return Output(shown + note, foreign=await call.context.sandbox.files.has_foreign_text())
