"""The configuration of a backend, from the settings.

Imported only where a backend is started or examined: the bot talks to one, and saves 3 MiB.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path

from backend.client import control_socket
from backend.config import BackendConfig, ScheduledProfile, ThermalLimits
from backend.models.profile import Profile, of_file
from backend.models.profile import load as load_profile
from bot.settings import BackendSection, ConfigurationError, Settings, config_folder, load

log = logging.getLogger(__name__)


def backend_config(settings: Settings, model: str = "") -> BackendConfig:
    """The configuration of a backend; `model` as in `running_backend`."""
    chosen = settings.backend
    external = chosen.kind == "external"
    return BackendConfig(
        state_dir=settings.state_dir,
        socket=control_socket(chosen.socket, settings.state_dir),
        kind=chosen.kind,
        profile=chosen.profile,
        server=chosen.server,
        model=model or (chosen.model if external else ""),
        bare=bool(model) and not external and chosen.profile == BackendSection().profile,
        profiles=profiles_folder(),
        embedding=chosen.embedding,
        urls=tuple(chosen.url) if external else (),
        context=chosen.context,
        api_key=chosen.api_key.get_secret_value(),
        vision=None if chosen.vision == "auto" else chosen.vision,
        connect_seconds=chosen.connect_seconds,
        schedule=schedule(settings),
        reschedule=current_schedule(settings),
        timezone=settings.agent.timezone,
        thermal=ThermalLimits(chosen.warn_celsius, chosen.hold_celsius, chosen.resume_celsius),
        proxy_port=chosen.local_port,
        proxy_key=chosen.local_key.get_secret_value(),
    )


def profiles_folder() -> Path:
    """The user's own profiles."""
    return config_folder() / "profiles"


def profile_of(name: str) -> Profile:
    """A profile by name, or a bare GGUF file as one; ProfileError where there is none."""
    if name.endswith(".gguf") or (os.sep in name and Path(name).is_file()):
        return of_file(Path(name))
    return load_profile(name, profiles_folder())


def schedule(settings: Settings) -> tuple[ScheduledProfile, ...]:
    return tuple(ScheduledProfile(each.at, each.profile) for each in settings.backend.schedule)


def current_schedule(settings: Settings) -> Callable[[], tuple[ScheduledProfile, ...]]:
    """A function that reads the schedule from the configuration file; while that is invalid, it gives
    the last valid one."""
    path, last, read_at = settings.path, schedule(settings), 0  # the file's mtime, in ns

    def read() -> tuple[ScheduledProfile, ...]:
        nonlocal last, read_at
        try:
            changed = path.stat().st_mtime_ns if path else 0
            if changed != read_at:
                read_at = changed
                last = schedule(load(path))
        except (OSError, ConfigurationError) as error:
            log.warning("the schedule of the model stays as it was: %s", error)
        return last

    return read
