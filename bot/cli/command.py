"""What every command is made of: options, event loop, errors as sentences with exit codes, logging."""

import asyncio
import gc
import logging
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bot.settings import Settings


STARTING_SECONDS = 2.0  # what is made by then lives on: a search for garbage would find none

# A bot token, wherever it stands (URLs of the Bot API hold it).
TOKEN = re.compile(r"\b\d{3,}:[A-Za-z0-9_-]{3,}")


class Failed(click.ClickException):
    """It failed: one plain sentence on stderr, exit code 1."""

    exit_code = 1

    def show(self, file: object = None) -> None:
        click.echo(self.message, err=True)


class Misused(Failed):
    """Wrong usage or configuration."""

    exit_code = 2


class NoBackend(Failed):
    """The model backend is not available."""

    exit_code = 3


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a question: while that blocks the event loop, the loop's own handler is not run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def confirmed(question: str, *, default: bool = False) -> bool:
    """Ask yes or no. Where standard input has ended nobody can be asked, which is no interruption."""
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
    def configured(self) -> "Settings":
        """The settings, whoever runs this."""
        from bot.settings import load

        return load(self.config)

    @cached_property
    def settings(self) -> "Settings":
        """The settings; from here on this process is the state's owner, where root started it."""
        return self._with_access(keep_root=False)

    @cached_property
    def settings_as_root(self) -> "Settings":
        """The settings for what only root may do, and does without harm to the state."""
        return self._with_access(keep_root=True)

    def _with_access(self, *, keep_root: bool) -> "Settings":
        from bot.cli.owner import act_as_owner

        act_as_owner(self.configured.state_dir, keep_root=keep_root)
        return self.configured


def checked_chat(_ctx: click.Context, _option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise Misused("A chat needs a name.")
    if any("\ud800" <= character <= "\udfff" for character in name):  # bytes that are no UTF-8
        raise Misused("The chat's name is not UTF-8.")
    return name


pass_options = click.make_pass_decorator(Options)
chat_option = click.option(
    "--chat", default="cli", show_default=True, help="Which chat.", callback=checked_chat
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def runs(function: Callable[..., Coroutine[Any, Any, int | None]]) -> Callable[..., int]:
    """Run an async command; TERM and INT cancel it, so that everything is put away: exit code 130."""
    return _running(function, ended=130)


def serves(function: Callable[..., Coroutine[Any, Any, int | None]]) -> Callable[..., int]:
    """Run a service as `runs` does; TERM is how a service manager ends it: exit code 0."""
    return _running(function, ended=0)


def search_for_garbage() -> None:
    """From now on, and not among what the start has made."""
    gc.freeze()
    gc.enable()


def _running(
    function: Callable[..., Coroutine[Any, Any, int | None]], ended: int
) -> Callable[..., int]:
    codes: list[int] = []

    async def cancellable(work: Coroutine[Any, Any, int | None]) -> int | None:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def stop(code: int) -> None:
            codes.append(code)
            task.cancel()

        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, ended)):
            loop.add_signal_handler(number, stop, code)
        loop.call_later(STARTING_SECONDS, search_for_garbage)
        try:
            return await task
        except asyncio.CancelledError:
            return codes[0] if codes else 130

    def run(*args: Any, **kwargs: Any) -> int:
        try:
            return asyncio.run(cancellable(function(*args, **kwargs))) or 0
        except (Exception, BaseExceptionGroup) as error:
            raise for_person(error) from error

    return update_wrapper(run, function)


def for_person(error: BaseException) -> BaseException:
    """The exception whose sentence a person reads; one that is not expected stays itself.

    Its imports wait for a failure: no command needs all of them.
    """
    from agent.errors import AgentError, BackendAway
    from agent.mcp.install import InstallError
    from agent.skills import SkillError
    from backend.build.recipe import CannotBuild
    from backend.build.release import CannotGet
    from backend.client import BackendRefused, BackendUnavailable
    from backend.measure.probe import CannotMeasure
    from backend.models.gguf_header import NotAModel
    from backend.models.profile import ProfileError
    from backend.models.pull import PullError
    from backend.pictures import DrawFailed
    from backend.server.launch import CannotStart
    from backend.service import AlreadyRunning
    from bot.cli.owner import NotTheOwner
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
        case CannotBuild() | CannotGet() | InstallError() | SkillError():
            return Failed(str(error))
        case BackupError() | SetupError() | UpgradeError():
            return Failed(str(error))
    return error


class Redacted(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return TOKEN.sub("[token]", super().format(record))


def start_logging(verbose: bool, *, service: bool = False) -> None:
    """Log to stderr: warnings only, information for a service, everything when verbose.

    Under systemd the journal adds the time.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacted("%(levelname)s %(name)s %(message)s"))
    level = logging.DEBUG if verbose else logging.INFO if service else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler], force=True)
    of_mcp = ("mcp", "httpx2", "httpcore2")  # addresses and whole messages stand in it
    of_apps = ("httpx", "httpcore", "telegram.ext")
    for chatty in (*of_mcp, *of_apps, "aiosqlite", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # A gateway's page in place of JSON is told with a traceback; whoever called tells it in a line.
    logging.getLogger("telegram.request").setLevel(logging.CRITICAL)
