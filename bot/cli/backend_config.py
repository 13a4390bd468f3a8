"""The configuration of a backend, from the settings.

Imported only where a backend is started or examined: the bot talks to one, and saves 3 MiB.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from backend.client import control_socket
from backend.config import BackendConfig, ScheduledProfile, ThermalLimits
from backend.models.found import found_models
from backend.models.profile import Profile, ProfileError, is_file, locate
from backend.models.profile import load as load_profile
from bot.cli.progress import pull_files
from bot.settings import ConfigurationError, Settings, config_folder, load

log = logging.getLogger(__name__)


def backend_config(settings: Settings, model: str = "") -> BackendConfig:
    """The configuration of a backend; `model` is the profile or GGUF that it starts with, in place of the chosen one."""
    chosen = settings.backend
    external = chosen.kind == "external"
    return BackendConfig(
        state_dir=settings.state_dir,
        socket=control_socket(chosen.socket, settings.state_dir),
        kind=chosen.kind,
        profile=chosen.profile,
        server=chosen.server,
        start_with="" if external else model,
        model=(model or chosen.model) if external else "",
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
        saved_prompts_mib=chosen.saved_prompts_mib,
        lend_to_others=chosen.lend_to_others,
        urgent_model=chosen.urgent_model,
        proxy_key=chosen.local_key.get_secret_value(),
    )


def profiles_folder() -> Path:
    """The user's own profiles."""
    return config_folder() / "profiles"


def profile_of(name: str) -> Profile:
    """Load a profile by its name, or make one for the path of a GGUF file. Raises ProfileError."""
    return load_profile(name, profiles_folder())


def profile_here(name: str) -> Profile:
    """Find a profile as `profile_of` does; ProfileError for the path of a file that does not exist, too."""
    if is_file(name) and not (path := Path(name).expanduser()).is_file():
        raise ProfileError(f"There is no file {path}.")
    return profile_of(name)


async def model_named(given: str, config: BackendConfig, say: Callable[[str], None]) -> str:
    """What `--model` means: a profile's name, or the path of a GGUF, which may be named by the program that has it.

    Files of a profile that are not here are downloaded; their sizes are told first. Raises ProfileError and
    PullError.
    """
    path = Path(given).expanduser()
    if path.is_file():
        return str(path.resolve())
    if found := next(
        (each for each in await asyncio.to_thread(found_models) if each.name == given), None
    ):
        return str(found.path)
    profile = profile_here(given)
    missing = [each for each in profile.needed if not locate(each, config.models_folder).is_file()]
    if missing:
        await pull_files(missing, config, say)
    return profile.name


def next_name(settings: Settings) -> str:
    """The profile or GGUF that the backend serves when it starts next: chosen, scheduled or configured."""
    from backend.server.managed import starting_profile

    config = backend_config(settings)
    return starting_profile(config, datetime.now(ZoneInfo(config.timezone)))


def next_profile(settings: Settings) -> Profile:
    """The profile of `next_name`, as this machine runs it. Blocks. Raises ProfileError."""
    from backend.gpu.nvml import installed_gpus

    return profile_of(next_name(settings)).for_machine(gpu=bool(installed_gpus().gpus))


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
