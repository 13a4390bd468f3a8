"""The model backend that a program works with: the one that runs, or one of its own."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from backend.client import BackendClient, default_socket
from bot.backend_failover import answers, succeeding
from bot.settings import ConfigurationError, Settings, load

log = logging.getLogger(__name__)


@asynccontextmanager
async def reach_backend(settings: Settings, model: str = "") -> AsyncIterator[BackendClient]:
    """The running backend, or one of our own for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(BackendClient(socket_of(settings)))
        own = partial(own_backend, settings, model)
        found = await answers(client)
        await stack.enter_async_context(succeeding(client, own) if found else own())
        yield client


@asynccontextmanager
async def own_backend(settings: Settings, model: str = "") -> AsyncIterator[Any]:
    """A whole backend inside this process."""
    from backend.service import BackendRunning, serve_backend

    async with AsyncExitStack() as stack:
        with suppress(BackendRunning):  # somebody else's came up in the same moment: theirs serves
            yield await stack.enter_async_context(serve_backend(backend_config(settings, model)))
            return
        yield None


def backend_config(settings: Settings, model: str = "") -> Any:
    from backend.config import BackendConfig, Thermal

    chosen = settings.backend
    return BackendConfig(
        state_dir=settings.state_dir,
        socket=socket_of(settings),
        kind=chosen.kind,
        profile=chosen.profile,
        server=chosen.server,
        model=model or (chosen.model if chosen.kind == "external" else ""),
        profiles=profiles_folder(),
        urls=tuple(chosen.url) if chosen.kind == "external" else (),
        context=chosen.context,
        api_key=chosen.api_key.get_secret_value(),
        connect_seconds=chosen.connect_seconds,
        schedule=_scheduled(settings),
        reschedule=Rescheduled(settings),
        timezone=settings.agent.timezone,
        thermal=Thermal(chosen.warn_celsius, chosen.hold_celsius, chosen.resume_celsius),
        proxy_port=chosen.local_port,
        proxy_key=chosen.local_key.get_secret_value(),
    )


def _scheduled(settings: Settings) -> tuple[Any, ...]:
    from backend.config import ScheduledProfile

    return tuple(ScheduledProfile(each.at, each.profile) for each in settings.backend.schedule)


class Rescheduled:
    """The schedule as the configuration file has it by now; while it is not valid, as it was."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.path
        self._last = _scheduled(settings)
        self._seen = 0

    def __call__(self) -> tuple[Any, ...]:
        try:
            changed = self._path.stat().st_mtime_ns if self._path else 0
            if changed != self._seen:
                self._seen = changed
                self._last = _scheduled(load(self._path))
        except (OSError, ConfigurationError) as error:
            log.warning("the schedule of the model stays as it was: %s", error)
        return self._last


def profile_names() -> list[str]:
    from backend.models.profile import names

    return names(profiles_folder())


def profiles_folder() -> Path:
    """The user's own profiles."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "voltaire" / "profiles"


def socket_of(settings: Settings) -> Path:
    named = settings.backend.socket
    return Path(named) if named else default_socket(settings.state_dir)
