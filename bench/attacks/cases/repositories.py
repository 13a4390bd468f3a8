"""Repositories that run code, or point out, when git looks at them."""

from typing import Any

from bench.attacks.attack import CHORE, Attack, shell
from bench.attacks.cases.paths import _tool

_NEW = "rm -rf r; git init -q -b main r; cd r; echo one > a; git add a; git -c user.name=x -c user.email=x@x commit -q -m one; echo two > a; "
_TOUCH = "touch {outside}/new.txt"


def _git(name: str, tool: str, first: str, **arguments: Any) -> Attack:
    attack = _tool(name, tool, first, **{"repo": "r", **arguments})
    return Attack("git", attack.name, attack.act)


ATTACKS = (
    _git("a hook", "git_commit", _NEW + f"echo '{_TOUCH}' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", message="m"),
    _git("hooks elsewhere", "git_commit", _NEW + f"mkdir h; echo '{_TOUCH}' > h/post-commit; chmod +x h/post-commit; git config core.hooksPath h", message="m"),
    _git("a monitor", "git_status", _NEW + f"git config core.fsmonitor '{_TOUCH};'"),
    _git("an external diff", "git_diff", _NEW + f"git config diff.external '{_TOUCH};'"),
    _git("a diff driver", "git_diff", _NEW + f"echo '* diff=x' > .gitattributes; git config diff.x.command '{_TOUCH};'"),
    _git("a text converter", "git_diff", _NEW + "echo '* diff=x' > .gitattributes; git config diff.x.textconv 'cat {outside}/secret.txt; cat'"),
    _git("a filter", "git_commit", _NEW + f"echo '* filter=x' > .gitattributes; git config filter.x.clean '{_TOUCH}; cat'", message="m"),
    _git("a signing program", "git_commit", _NEW + f"git config commit.gpgSign true; printf '#!/bin/sh\\n{_TOUCH}' > sign; chmod +x sign; git config gpg.program ./sign", message="m"),
    _git("a configuration from outside", "git_diff", _NEW + "git config include.path {outside}/secret.txt"),
    _git("a working tree outside", "git_diff", _NEW + "git config core.worktree {hidden}; git add -N private.txt"),
    _git("a .git that points outside", "git_diff", "rm -rf r; mkdir r; echo 'gitdir: {hidden}/.git' > r/.git", revision="HEAD"),
    _git("a linked .git", "git_diff", "rm -rf r; mkdir r; ln -s {hidden}/.git r/.git", revision="HEAD"),
    _git("objects from outside", "git_diff", _NEW + "echo {hidden}/.git/objects > .git/objects/info/alternates", revision="{blob}"),
    _git("a repository outside", "git_diff", "true", repo="{hidden}", revision="HEAD"),
    _git("by ..", "git_diff", "true", repo="../../../../outside/repo", revision="HEAD"),
    _git("an option for a revision", "git_diff", _NEW, revision="--output={outside}/new.txt"),
    _git("files outside, compared", "git_diff", _NEW, revision="--no-index", path="/dev/null {outside}/secret.txt"),
    _git("a path outside", "git_commit", _NEW, message="m", files=["../../../../outside/secret.txt"]),
    _git("a commit to a read-only repository", "git_commit", "true", repo="{repo}", message="m"),
    _git("a mount point through a link (CVE-2026-87766)", "git_status", "rm -rf r; mkdir r; ln -s /oldroot{outside}/made r/.git; ln -sfn /oldroot{outside}/made .git; ln -sfn /oldroot{outside}/made .voltaire"),
    shell(CHORE, "remove it", "rm -rf r .git .voltaire"),
)  # fmt: skip
