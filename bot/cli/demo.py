"""voltaire demo: the whole path on this machine, with a local Telegram, by Pocket or the model that is named."""

import asyncio
import math
import os
import secrets
import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import click
from pydantic import SecretStr

from agent.channels import Assignment
from agent.events import Event, Notice, TurnFinished
from backend.config import BackendConfig
from backend.models.found import found_models
from backend.models.outlook import PREFERRED_CPU, size_text
from bot.approval_question import decision
from bot.cli.ask import TextPrinter
from bot.cli.backend_config import profile_of
from bot.cli.bot import serve, serve_until
from bot.cli.command import Failed, Misused, Options, model_option, runs
from bot.cli.connect import require_sandbox, running_backend
from bot.cli.progress import sign_of_life
from bot.localgram import Localgram, Message, Person
from bot.localgram.wire import Json
from bot.settings import (
    AgentSection,
    BackendSection,
    Settings,
    StateSection,
    TelegramSection,
    default_state_dir,
    machine_timezone,
)

PORT = 8765
OWNER = 1
ANSWER_SECONDS = 600
SHOWN_MODELS = 3
NOBODY = "Nobody can press a button here, so it is denied; voltaire demo has a page that asks."


@click.command("demo", help="Try it here: no token, no GPU, no download.")
@click.option("--ask", "text", help="Send this one message, print the answer, and end.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port of the chat page.",
)
@model_option
@runs
async def command(_: Options, text: str | None, port: int, model: str) -> int:
    if text is not None and not text.strip():
        raise Misused("There is nothing to ask: the text is empty.")
    async with phone(0 if text else port) as (gram, owner), own_state() as state:
        settings = Settings.model_construct(  # nothing of the user's own configuration
            telegram=TelegramSection(
                token=SecretStr(gram.token), base_url=gram.url, owners=[OWNER]
            ),
            agent=AgentSection(timezone=machine_timezone()),
            backend=BackendSection(),
            state=StateSection(dir=state),
        )
        with sign_of_life("trying the sandbox"):
            await require_sandbox(settings)
        if text:
            return await one_answer(settings, owner, text, model)
        async with running_backend(settings, model) as backend:
            click.echo(
                f"Voltaire is at {gram.page} (Ctrl-C ends it). Try: how much disk space is free?"
            )
            if not model:
                for line in await asyncio.to_thread(real_models):
                    click.echo(line)
            await serve(settings, backend, demo=True)
    return 0


def real_models() -> list[str]:
    """Say how to try a real model: one found on this machine, else a download. Blocks."""
    here = found_models()[:SHOWN_MODELS]
    choices = [
        (shlex.quote(str(each.path)), f"{size_text(each.size)}, from {each.place}") for each in here
    ]
    if not choices:
        profile = profile_of(PREFERRED_CPU[0])
        choices = [(profile.name, f"{size_text(profile.model.size or 0)} to download, once")]
    return [
        "This model, Pocket, is a toy. A real one:",
        *(f"  make demo MODEL={name}  ({about})" for name, about in choices),
    ]


@asynccontextmanager
async def phone(port: int) -> AsyncIterator[tuple[Localgram, Person]]:
    """A local Bot API server with one person, in a private chat with the bot. Raises Failed."""
    key = secrets.token_urlsafe(16)
    gram = Localgram(f"1000001:{secrets.token_urlsafe(24)}", port, key=key)
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(gram)
        except OSError as error:
            how = "make demo PORT=" if os.environ.get("MAKELEVEL") else "--port "
            raise Failed(
                f"Port {port} cannot be used: {os.strerror(error.errno or 0)}. Choose another: {how}{port + 1}."
            ) from None
        yield gram, gram.user("You", id=OWNER, started=True)


@asynccontextmanager
async def own_state() -> AsyncIterator[Path]:
    """A temporary state folder beside the real one, whose downloaded models it uses and adds to."""
    real = default_state_dir()
    real.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="voltaire-demo-", dir=real.parent))
    BackendConfig(folder).models_folder.symlink_to(BackendConfig(real).models_folder)
    try:
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def one_answer(settings: Settings, owner: Person, text: str, model: str) -> int:
    """Send the message as an update, and print the turn until the bot's message comes back."""
    text_printer = TextPrinter(steps_out=True)
    printer = TurnPrinter(text_printer.print)

    async def answer() -> TurnFinished:
        async with asyncio.timeout(ANSWER_SECONDS):
            await owner.send(text)
            while denial := deny_button(await owner.next_message(where=is_loud, seconds=math.inf)):
                text_printer.print(Notice(NOBODY))
                owner.press_button(*denial)
            return await printer.finished

    async with running_backend(settings, model) as backend, text_printer:
        try:
            finished = await serve_until(answer(), settings, backend, [printer])
        except TimeoutError:
            raise Failed(f"No answer came within {ANSWER_SECONDS} s.") from None
    return 0 if finished.reason == "done" else 1


def is_loud(message: Message) -> bool:
    return not message.silent


def deny_button(message: Message) -> tuple[Message, Json] | None:
    """A message that asks for approval, with its button that denies."""
    buttons = (button for row in message.keyboard for button in row)
    denials = (each for each in buttons if decision(each.get("callback_data", ""))[1] == "denied")
    return next(((message, button) for button in denials), None)


class TurnPrinter:
    """A TurnListener that passes a turn's events to `show`; `finished` is how the turn ended."""

    def __init__(self, show: Callable[[Event], None]) -> None:
        self.finished: asyncio.Future[TurnFinished] = asyncio.get_running_loop().create_future()
        self._show = show

    async def event(self, assignment: Assignment, event: Event) -> None:
        self._show(event)
        if isinstance(event, TurnFinished) and not self.finished.done():
            self.finished.set_result(event)

    async def waiting(self, chat: str, why: str) -> None:
        self._show(Notice(why))
