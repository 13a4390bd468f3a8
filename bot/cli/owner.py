"""A command acts as the owner of the state, so that root leaves no files that the services cannot read."""

import atexit
import os
import pwd
import shlex
import sys
from pathlib import Path

from agent.files import give


class NotTheOwner(Exception):
    """One sentence: whose the state is, and the command to use instead."""


def act_as_owner(state: Path, *, keep_root: bool = False) -> None:
    """Become the state's owner where root runs this; raises NotTheOwner for any other user.

    Where the owner cannot read this program (in root's home, for instance), root stays root, and gives
    the owner all of the state at exit. With `keep_root` it stays root and the command sees to that.
    """
    try:
        owner = state.stat()
    except FileNotFoundError:
        return
    except PermissionError:
        raise refused(state, "another user") from None
    mine = os.geteuid()
    if mine == owner.st_uid:
        return
    try:
        user = pwd.getpwuid(owner.st_uid)
    except KeyError:
        user = None
    if mine:
        raise refused(state, user.pw_name if user else str(owner.st_uid))
    if keep_root:
        return
    try:
        if not program_readable(owner.st_uid, owner.st_gid):
            atexit.register(give, state.resolve(), owner.st_uid, owner.st_gid)
            return
        if user:
            os.initgroups(user.pw_name, owner.st_gid)
            os.environ["HOME"] = user.pw_dir
            # Where systemd has the user's units.
            os.environ["XDG_RUNTIME_DIR"] = f"/run/user/{owner.st_uid}"
        else:
            os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)
    except PermissionError:
        raise refused(state, user.pw_name if user else str(owner.st_uid)) from None


def refused(state: Path, owner: str) -> NotTheOwner:
    from bot.setup.units import USER, group_exists

    if os.geteuid() == 0:  # as `podman exec --user 0` where all capabilities were dropped
        return NotTheOwner(
            f"The state in {state} belongs to {owner}, and root may not act as another user here:"
            " run the command as its owner; in a container, leave out `--user`."
        )
    typed = shlex.join(["sudo", "voltaire", *sys.argv[1:]])
    others = (
        f"; members of the group {USER} may run `voltaire status`" if group_exists(USER) else ""
    )
    return NotTheOwner(f"The state in {state} belongs to {owner}: use `{typed}`{others}.")


def program_readable(uid: int, gid: int) -> bool:
    """Whether that user can read this program and its Python, wherever they are installed."""
    places = (Path(__file__), Path(sys.prefix), Path(sys.base_prefix).resolve())
    os.setegid(gid)
    os.seteuid(uid)
    try:
        return all(os.access(place, os.R_OK, effective_ids=True) for place in places)
    finally:
        os.seteuid(0)
        os.setegid(0)
