"""voltaire bot: messaging apps, agent and scheduler in the foreground; voltaire run: the backend too."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import click

from agent.aio import BackgroundTasks
from agent.channels import TurnListener
from agent.leaks import LeakDetector
from agent.store import Store
from backend.client import BackendClient
from backend.control.sd_notify import feed_watchdog, notify
from bot.cli.command import Failed, Misused, Options, model_option, serves, start_logging
from bot.cli.connect import backend_client, require_sandbox, running_backend
from bot.cli.holder_api import serve_as_bot, serve_command
from bot.cli.holder_client import holding_as_bot
from bot.cli.model_offers import MachineModels
from bot.messaging_apps import Apps, AppUnavailable, MessagingApp
from bot.service import serve_bot
from bot.settings import Settings
from bot.state import MATRIX, PRESENCE, Presence, open_state, read_presence, started, write_presence

log = logging.getLogger(__name__)

T = TypeVar("T")


@click.command("bot", help="Run messaging apps, agent and scheduler.")
@serves
async def command(options: Options) -> None:
    start_logging(options.verbose, service=True)
    async with backend_client(options.settings) as backend:
        await serve(options.settings, backend)


@click.command("run", help="Run backend and bot together in the foreground.")
@model_option
@serves
async def run(options: Options, model: str) -> None:
    """Run backend and bot together in the foreground, where there is no systemd."""
    start_logging(options.verbose, service=True)
    await require_sandbox(options.settings)
    settings = options.settings
    async with running_backend(settings, model) as backend:
        await serve(settings, backend)


async def serve_terminals(settings: Settings, backend: BackendClient) -> None:
    """Serve `voltaire chat` and its jobs, without a messaging app, until cancelled or a bot with one takes over."""
    state, pid = settings.state_dir, os.getpid()
    if other := read_presence(state):
        raise Failed(f"Another bot runs on this state (process {other.pid}).")
    async with (
        holding_as_bot(settings),
        http_servers(settings, backend),
        serve_command(settings, backend, jobs=True) as released,
        BackgroundTasks() as tasks,
    ):
        notify("READY=1", "STATUS=no messaging app; voltaire chat talks in a terminal")
        tasks.start(feed_watchdog(), "the watchdog of systemd")
        click.echo(
            "No messaging app is set up. Talk in another terminal: voltaire chat."
            " An app: voltaire setup telegram."
        )
        write_presence(state, Presence(pid=pid, started=started(pid) or 0))
        try:
            await released.wait()
        finally:
            (state / PRESENCE).unlink(missing_ok=True)


async def serve(
    settings: Settings,
    backend: BackendClient,
    also: Sequence[TurnListener] = (),
    *,
    demo: bool = False,
) -> None:
    """Run the bot until it is cancelled; without a messaging app, terminals are served. `also` hear of every turn; `demo`: the bot says that it is one."""
    telegram, matrix = settings.telegram, settings.matrix
    if matrix.homeserver and not matrix.user:
        raise Misused("matrix.user is missing: the bot's account, such as @voltaire:example.org.")
    if not telegram.token.get_secret_value() and not matrix.homeserver:
        if kept := telegram.token_file:
            raise Misused(f"telegram.token_file: {kept} cannot be read by this user, or is empty.")
        await serve_terminals(settings, backend)
        return
    models, apps = MachineModels(settings, demo), partial(open_apps, demo=demo)
    async with holding_as_bot(settings), http_servers(settings, backend):
        await serve_bot(settings, backend, apps, also, notify, models, serve_as_bot)


@asynccontextmanager
async def http_servers(settings: Settings, backend: BackendClient) -> AsyncIterator[None]:
    """Serve beside the bot: the owner's page (`page.listen`), the figures for Prometheus (`metrics.listen`).

    One that is not configured is not loaded.
    """
    async with AsyncExitStack() as stack:
        if settings.page.listen or settings.metrics.listen:
            async with open_state(settings):
                pass  # both read a database that exists, in the schema of this version
        if settings.page.listen:
            from bot.cli.page import make_change, talk
            from bot.cli.status import status_json
            from bot.page.server import serve_page

            facts = partial(status_json, settings=settings)
            changes, turns = partial(make_change, settings), partial(talk, settings, backend)
            serving = serve_page(settings, backend, facts, changes, turns)
            page = await stack.enter_async_context(serving)
            if page.exposed:
                log.warning("%s", page.exposed)
        if settings.metrics.listen:
            from bot.metrics import serve_metrics

            address = await stack.enter_async_context(serve_metrics(settings, backend))
            log.info("figures at %s", address)
        yield


async def serve_until(
    work: Coroutine[Any, Any, T],
    settings: Settings,
    backend: BackendClient,
    also: Sequence[TurnListener] = (),
) -> T:
    """Run the bot until `work` is done, and return its result; raises what ended the bot before."""
    serving = asyncio.create_task(serve(settings, backend, also))
    working = asyncio.create_task(work)
    try:
        await asyncio.wait({serving, working}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        return await working
    finally:
        for task in (serving, working):
            task.cancel()
        await asyncio.wait({serving, working})


@asynccontextmanager
async def open_apps(
    settings: Settings, store: Store, leaks: LeakDetector, *, demo: bool = False
) -> AsyncIterator[Apps]:
    """The configured messaging apps, not yet listening. `leaks` detects what they must not send.

    The only function that knows all apps; the library of one that is not configured is not loaded.
    """
    timezone, repos = settings.agent.timezone, tuple(settings.agent.repos)
    apps: list[MessagingApp] = []
    async with AsyncExitStack() as stack:
        if settings.telegram.token.get_secret_value():
            from bot.telegram.app import TelegramConfig, telegram_app

            telegram = TelegramConfig(
                **dict(settings.telegram),
                timezone=timezone,
                repos=repos,
                demo=demo,
                page=settings.page.url if settings.page.listen else "",
            )
            apps.append(await stack.enter_async_context(telegram_app(telegram, store, leaks)))
        if settings.matrix.homeserver:
            try:
                from bot.matrix.app import MatrixConfig, matrix_app
            except ModuleNotFoundError as error:
                raise AppUnavailable(
                    f"Matrix needs the package {error.name}: `make matrix` in a checkout, or"
                    " `pip install 'voltaire-agent[matrix]'`.",
                    refused=True,
                ) from None
            matrix = MatrixConfig(
                **dict(settings.matrix),
                folder=settings.state_dir / MATRIX,
                timezone=timezone,
                repos=repos,
            )
            apps.append(await stack.enter_async_context(matrix_app(matrix, store, leaks)))
        yield await stack.enter_async_context(Apps(apps))
