"""What a model server needs: card and driver, a binary, the model's file, and room for it."""

import asyncio
from pathlib import Path

from backend.gpu.nvml import InstalledGpu, installed_gpus
from backend.models.fit import fit_report, verdict
from backend.models.gguf_header import NotAModel, read_header
from backend.models.outlook import GIB, Machine
from backend.models.profile import ProfileError, locate
from backend.models.pull import sha256
from backend.server.launch import EMBEDDED, CannotStart, find_binary, prepare
from bot.cli.checks import Finding, failure, passed, warning
from bot.cli.connect import backend_config, profile_of
from bot.settings import Settings

# The CUDA 12 builds for Volta need driver 570 to 580: an older one gives "device kernel image is
# invalid" or falls back to the CPU silently, a newer one drops the card (facts of V100 builds).
VOLTA = (7, 0)
VOLTA_DRIVERS = (570, 580)
PULL_AGAIN = "Pull it again: voltaire model pull."


async def card(settings: Settings) -> list[Finding]:
    found = await asyncio.to_thread(installed_gpus)
    if found.problem:
        if settings.backend.kind == "external" or not wants_card(settings):
            detail = f"No GPU ({found.problem}); none is needed for this configuration."
            return [passed("gpu", detail)]
        detail = f"No GPU can be used: {found.problem}."
        return [warning("gpu", detail, "Install the NVIDIA driver for the card.")]
    if not found.gpus:
        remedy = "Check power and seating; dmesg names Xid errors."
        return [warning("gpu", "The driver knows no GPU.", remedy)]
    return [driver_finding(gpu, found.driver) for gpu in found.gpus]


def wants_card(settings: Settings) -> bool:
    try:
        return profile_of(settings.backend.profile).gpu
    except ProfileError:
        return True


def driver_finding(gpu: InstalledGpu, driver: str | None) -> Finding:
    compute = ".".join(map(str, gpu.capability)) if gpu.capability else "unknown"
    detail = f"{gpu.name}, compute {compute}, driver {driver or 'unknown'}"
    low, high = VOLTA_DRIVERS
    if gpu.capability != VOLTA or not driver or low <= int(driver.split(".")[0]) <= high:
        return passed("gpu", detail)
    remedy = f"Install a driver from {low} to {high}: a newer one drops Volta, an older one lacks its CUDA 12."
    return failure("gpu", f"{detail}: this driver does not fit the card.", remedy)


async def binary(settings: Settings) -> list[Finding]:
    """The server, and its flags against the profile's."""
    if settings.backend.kind == "external":
        return []
    config = backend_config(settings)
    try:
        command = (await find_binary(config)).command
        name = "The embedded server" if command == EMBEDDED else Path(command[0]).name
        profile = profile_of(settings.backend.profile)
        launch = await prepare(config, profile, measure=False)
    except ProfileError as error:
        return [failure("server", str(error), "voltaire model list")]
    except CannotStart as error:
        if error.cause.kind == "model missing":  # another check's matter
            return [passed("server", f"{name} answers.")]
        remedy = "voltaire server build, or name one that is there (backend.server)."
        return [failure("server", str(error), remedy)]
    detail = f"{name} takes the flags of profile {profile.name}"
    if launch.left_out:
        detail = f"{detail}, but lacks {', '.join(launch.left_out)}."
        return [warning("server", detail, "Build a newer one: voltaire server build.")]
    return [passed("server", f"{detail}.")]


async def model(settings: Settings) -> list[Finding]:
    """The model file: there, whole, as its profile names it."""
    if settings.backend.kind == "external":
        return []
    try:
        source = profile_of(settings.backend.profile).model
    except ProfileError as error:
        return [failure("model", str(error), "voltaire model list")]
    path = locate(source, backend_config(settings).models_folder)
    if not path.is_file():
        remedy = f"voltaire model pull {settings.backend.profile}"
        return [failure("model", f"{path} is missing.", remedy)]
    return [await asyncio.to_thread(file_finding, path, source.sha256)]


def file_finding(path: Path, checksum: str | None) -> Finding:
    try:
        header = read_header(path)
    except (NotAModel, OSError) as error:
        return failure("model", str(error), PULL_AGAIN)
    detail = f"{path.name}, {header.architecture}, {path.stat().st_size / 2**20:,.0f} MiB"
    if checksum and sha256(path) != checksum:
        return failure("model", f"{detail}: the checksum differs.", PULL_AGAIN)
    return passed("model", detail)


async def fit(settings: Settings) -> list[Finding]:
    """Whether the model fits the card, or the memory where there is none.

    Nothing where the model file is not here: another check says so.
    """
    if settings.backend.kind == "external":
        return []
    folder = backend_config(settings).models_folder
    try:
        profile = profile_of(settings.backend.profile)
        target, *draft = [read_header(locate(source, folder)) for source in profile.sources]
    except (ProfileError, NotAModel, OSError):
        return []
    free = (await asyncio.to_thread(Machine.here, folder)).free(profile)[0]
    report = fit_report(profile, target, draft[0] if draft else None, free)
    if misfit := verdict(profile.name, report):
        return [failure("fit", misfit, f"voltaire model fit {profile.name}")]
    need = report.own.need
    used, whole, memory = (
        (need.gpu, free.gpu, "on the card")
        if need.on_gpu
        else (need.host, free.host, "of free memory")
    )
    return [
        passed("fit", f"{profile.name} needs {used / GIB:.1f} of {whole / GIB:.1f} GiB {memory}")
    ]
