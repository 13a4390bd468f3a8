"""What several commands share: options, the event loop, and errors as sentences with exit codes."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any

import click

from bot.cli import Failed, Misused, NoBackend, Options


def _chat(_ctx: click.Context, _option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise Misused("A chat needs a name.")
    if any("\ud800" <= character <= "\udfff" for character in name):  # bytes that are no UTF-8
        raise Misused("The chat's name is not UTF-8.")
    return name


chat_option = click.option(
    "--chat", default="cli", show_default=True, help="Which chat.", callback=_chat
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def settings_of(ctx: click.Context) -> Any:
    assert isinstance(ctx.obj, Options)
    return ctx.obj.settings


def runs(function: Callable[..., Coroutine[Any, Any, int | None]]) -> Callable[..., int]:
    """Run an async command; TERM and INT cancel it, so that everything is put away."""

    def run(*args: Any, **kwargs: Any) -> int:
        try:
            return asyncio.run(_cancellable(function(*args, **kwargs))) or 0
        except BaseExceptionGroup as group:
            raise _told(first_error(group)) from group
        except Exception as error:
            raise _told(error) from error

    return update_wrapper(run, function)


async def _cancellable(work: Coroutine[Any, Any, int | None]) -> int | None:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 130


def first_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: BaseException) -> BaseException:
    """The exception whose sentence a person reads; what is not expected stays itself."""
    from agent.errors import AgentError, BackendAway
    from agent.store.errors import StoreError
    from backend.client import BackendUnavailable
    from backend.models.profile import ProfileError
    from backend.service import AlreadyRunning
    from bot.settings import ConfigurationError

    if isinstance(error, BackendAway | BackendUnavailable):
        return NoBackend(str(error))
    if isinstance(error, ProfileError | ConfigurationError):
        return Misused(str(error))
    if isinstance(error, AgentError | StoreError | AlreadyRunning):
        return Failed(str(error))
    return error


def words(text: str) -> str:
    """A text argument; "-" is standard input."""
    return sys.stdin.read() if text == "-" else text
