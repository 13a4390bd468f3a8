"""What every command is made of: options, event loop, errors as sentences with exit codes, logging."""

import asyncio
import atexit
import gc
import logging
import os
import pwd
import re
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click


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
            from agent.files import give

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


if TYPE_CHECKING:
    from bot.settings import Settings

AsyncCommand = Callable[..., Coroutine[Any, Any, int | None]]

STARTING_SECONDS = 2.0  # objects made by then live on: collecting them would free nothing

# A bot token, wherever it is (URLs of the Bot API contain it).
TOKEN = re.compile(r"\b\d{3,}:[A-Za-z0-9_-]{3,}")


class Failed(click.ClickException):
    """The command failed: one plain sentence on stderr, exit code 1."""

    exit_code = 1

    def show(self, file: object = None) -> None:
        from agent.sandbox.output_buffer import clean  # most commands need none of it

        click.echo(clean(self.message), err=True)


class Misused(Failed):
    """Wrong usage or configuration."""

    exit_code = 2


class NoBackend(Failed):
    """The model backend is not available."""

    exit_code = 3


@contextmanager
def handling_stop(handler: Callable[[int, Any], object]) -> Iterator[None]:
    """Give INT and TERM this handler within the block."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, former in zip(numbers, before, strict=True):
            signal.signal(number, former)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C or TERM end a question, which blocks the event loop, also when one came just before it."""
    with handling_stop(signal.default_int_handler):
        if (task := asyncio.current_task()) and task.cancelling():
            raise click.Abort
        yield


def confirmed(question: str, *, default: bool = False) -> bool:
    """Ask yes or no. Raises Failed at the end of standard input, which is no interruption."""
    try:
        with interruptible():
            return click.confirm(question, default=default)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            click.echo(err=True)
            raise Failed("Nobody answered, so nothing was done; --yes does not ask.") from None
        raise


@dataclass
class Options:
    """The global options, and the settings they lead to, read on first use.

    Raises ConfigurationError and NotTheOwner, which `runs` and `serves` show.
    """

    config: Path | None
    verbose: bool

    @cached_property
    def settings(self) -> "Settings":
        """The settings; started by root, this process is the state's owner from here on."""

        act_as_owner(self._read.state_dir)
        return self._read

    @cached_property
    def settings_as_root(self) -> "Settings":
        """The settings of a command that root runs as root, and that gives the state's owner what it makes there."""

        act_as_owner(self._read.state_dir, keep_root=True)
        return self._read

    @cached_property
    def _read(self) -> "Settings":
        from bot.settings import load

        return load(self.config)


def checked_chat(_ctx: click.Context, _option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise Misused("A chat needs a name.")
    if any("\ud800" <= character <= "\udfff" for character in name):  # bytes that are no UTF-8
        raise Misused("The chat's name is not UTF-8.")
    return name


chat_option = click.option(
    "--chat", default="cli", show_default=True, help="A chat (tg:111).", callback=checked_chat
)
model_option = click.option(
    "--model",
    default="",
    metavar="PROFILE|FILE",
    help="Start with this model; a profile's file is downloaded first.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def enable_gc() -> None:
    """Collect garbage from now on, but not among the objects that the start has made."""
    gc.freeze()
    gc.enable()


def runs(function: AsyncCommand, *, terminated: int = 130) -> Callable[..., int]:
    """Wrap an async command, which is given the Options first, as a function for click.

    TERM and INT cancel it, so that it cleans up; the exit code is then 130, or `terminated` for TERM.
    Its errors are raised as `for_person` gives them.
    """

    async def cancellable(work: Coroutine[Any, Any, int | None]) -> int | None:
        codes: list[int] = []
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def stop(number: int, _frame: object) -> None:
            codes.append(terminated if number == signal.SIGTERM else 130)
            task.cancel()
            loop.call_soon_threadsafe(bool)  # wakes the loop

        loop.call_later(STARTING_SECONDS, enable_gc)
        with handling_stop(stop):
            try:
                return await task
            except asyncio.CancelledError:
                return codes[0] if codes else 130

    @click.pass_obj
    def run(options: Options, *args: Any, **kwargs: Any) -> int:
        try:
            return asyncio.run(cancellable(function(options, *args, **kwargs))) or 0
        except (Exception, BaseExceptionGroup) as error:
            raise for_person(error) from error

    return update_wrapper(run, function)


def serves(function: AsyncCommand) -> Callable[..., int]:
    """Run a service: TERM is how a service manager ends it, so the exit code is then 0."""
    return runs(function, terminated=0)


def for_person(error: BaseException) -> BaseException:
    """Convert an error to a Failed with a sentence for people, or return it unchanged if it is a bug.

    The imports wait for a failure: no command needs all of these modules.
    """
    if isinstance(error, click.ClickException):
        return error
    from agent.errors import AgentError, BackendAway
    from agent.mcp.install import InstallError
    from agent.skills import SkillError
    from backend.build.recipe import CannotBuild
    from backend.build.release import CannotGet
    from backend.client import BackendRefused, BackendUnavailable
    from backend.files import ForeignFolder
    from backend.measure.probe import CannotMeasure
    from backend.models.gguf_header import NotAModel
    from backend.models.profile import ProfileError
    from backend.models.pull import PullError
    from backend.pictures import DrawFailed
    from backend.server.launch import CannotStart
    from backend.service import AlreadyRunning
    from bot.installed_program import UpgradeError
    from bot.messaging_apps import AppUnavailable
    from bot.restore import BackupError
    from bot.settings import ConfigurationError
    from bot.setup import SetupError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case BackendAway() | BackendUnavailable():
            return NoBackend(str(error))
        case ProfileError() | ConfigurationError() | AppUnavailable(refused=True):
            return Misused(str(error))
        case AgentError() | AlreadyRunning() | AppUnavailable() | BackendRefused() | NotTheOwner():
            return Failed(str(error))
        case CannotStart() | CannotMeasure() | DrawFailed() | NotAModel() | PullError():
            return Failed(str(error))
        case CannotBuild() | CannotGet() | ForeignFolder() | InstallError() | SkillError():
            return Failed(str(error))
        case BackupError() | SetupError() | UpgradeError():
            return Failed(str(error))
    return error


class Redacted(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return TOKEN.sub("[token]", super().format(record))


def start_logging(verbose: bool, *, service: bool = False) -> None:
    """Log to stderr: warnings, for a service information too, everything when verbose.

    No times: the journal adds them.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacted("%(levelname)s %(name)s %(message)s"))
    level = logging.DEBUG if verbose else logging.INFO if service else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler], force=True)
    of_mcp = ("mcp", "httpx2", "httpcore2")  # they log addresses and whole messages
    of_apps = ("httpx", "httpcore", "telegram.ext")
    for chatty in (*of_mcp, *of_apps, "aiosqlite", "apscheduler", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # It logs an HTML page in place of JSON (a gateway's) with a traceback; its caller logs one line.
    logging.getLogger("telegram.request").setLevel(logging.CRITICAL)
