"""The card and its driver, the server binary, the model file, and the backend if it runs."""

import asyncio
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.client import BackendClient, BackendUnavailable
from backend.gpu.nvml import InstalledGpu, NvmlUnusable, installed_gpus
from bot.cli.checks import Finding, Status, passed
from bot.settings import Settings

if TYPE_CHECKING:
    from agent.llm.selftest import SelfTest

# The CUDA 12 builds for Volta need driver 570 to 580: an older one gives "device kernel image is
# invalid" or falls back to the CPU silently, a newer one drops the card (facts of V100 builds).
VOLTA = (7, 0)
VOLTA_DRIVERS = (570, 580)


async def card(settings: Settings) -> list[Finding]:
    try:
        driver, cards = await asyncio.to_thread(installed_gpus)
    except NvmlUnusable as error:
        if settings.backend.kind == "external" or not _wants_card(settings):
            return [passed("gpu", f"No GPU ({error}); none is needed for this configuration.")]
        return [
            Finding(
                "gpu",
                "warn",
                f"No GPU can be used: {error}.",
                "Install the NVIDIA driver for the card.",
            )
        ]
    return [_driver(card, driver) for card in cards] or [
        Finding(
            "gpu",
            "warn",
            "The driver knows no GPU.",
            "Check power and seating; dmesg names Xid errors.",
        )
    ]


def _wants_card(settings: Settings) -> bool:
    from backend.models.profile import ProfileError, load
    from bot.cli.connect import profiles_folder

    try:
        return load(settings.backend.profile, profiles_folder()).gpu
    except ProfileError:
        return True


def capabilities() -> list[tuple[int, int]]:
    """The compute capability of each card; none where there is no GPU."""
    try:
        return [card.capability for card in installed_gpus()[1] if card.capability]
    except NvmlUnusable:
        return []


def driver() -> str | None:
    """The NVIDIA driver's version; None without one."""
    try:
        return installed_gpus()[0]
    except NvmlUnusable:
        return None


def memory_of_cards() -> list[float]:
    """GiB of each card; none where there is no GPU."""
    try:
        return [card.memory / 2**30 for card in installed_gpus()[1] if card.memory]
    except NvmlUnusable:
        return []


def _driver(card: InstalledGpu, driver: str | None) -> Finding:
    compute = ".".join(map(str, card.capability)) if card.capability else "unknown"
    detail = f"{card.name}, compute {compute}, driver {driver or 'unknown'}"
    low, high = VOLTA_DRIVERS
    if card.capability != VOLTA or not driver or low <= int(driver.split(".")[0]) <= high:
        return passed("gpu", detail)
    remedy = f"Install a driver from {low} to {high}: a newer one drops Volta, an older one lacks its CUDA 12."
    return Finding("gpu", "fail", f"{detail}: this driver does not fit the card.", remedy)


async def binary(settings: Settings) -> list[Finding]:
    """The server, and its flags against the profile's."""
    from backend.models.profile import ProfileError, load
    from backend.server.binary import CannotStart, find
    from backend.server.launch import prepare
    from bot.cli.connect import backend_config, profiles_folder

    if settings.backend.kind == "external":
        return []
    config = backend_config(settings)
    try:
        found = await find(config)
        profile = load(settings.backend.profile, profiles_folder())
        launch = await prepare(config, profile, measure=False)
    except ProfileError as error:
        return [Finding("server", "fail", str(error), "voltaire model list")]
    except CannotStart as error:
        if error.cause.kind == "model missing":  # another check's matter
            return [passed("server", f"{_named(found.command)} answers.")]
        remedy = "voltaire server build, or name one that is there (backend.server)."
        return [Finding("server", "fail", str(error), remedy)]
    detail = f"{_named(found.command)} takes the flags of profile {profile.name}"
    if launch.left_out:
        left = ", ".join(launch.left_out)
        return [
            Finding(
                "server",
                "warn",
                f"{detail}, but lacks {left}.",
                "Build a newer one: voltaire server build.",
            )
        ]
    return [passed("server", f"{detail}.")]


def _named(command: tuple[str, ...]) -> str:
    from backend.server.binary import EMBEDDED

    return "The embedded server" if command == EMBEDDED else Path(command[0]).name


async def model(settings: Settings) -> list[Finding]:
    """The model file: there, whole, as its profile names it."""
    from backend.models.profile import ProfileError, load, locate
    from bot.cli.connect import backend_config, profiles_folder

    if settings.backend.kind == "external":
        return []
    try:
        source = load(settings.backend.profile, profiles_folder()).model
    except ProfileError as error:
        return [Finding("model", "fail", str(error), "voltaire model list")]
    path = locate(source, backend_config(settings).models_folder)
    if not path.is_file():
        return [
            Finding(
                "model",
                "fail",
                f"{path} is missing.",
                f"voltaire model pull {settings.backend.profile}",
            )
        ]
    return [await asyncio.to_thread(_whole, path, source.sha256)]


def _whole(path: Path, checksum: str | None) -> Finding:
    from backend.models.gguf_header import NotAModel, read_header

    try:
        header = read_header(path)
    except (NotAModel, OSError) as error:
        return Finding("model", "fail", str(error), "Pull it again: voltaire model pull.")
    size = f"{path.name}, {header.architecture}, {path.stat().st_size / 2**20:,.0f} MiB"
    if checksum and _sha256(path) != checksum:
        return Finding(
            "model", "fail", f"{size}: the checksum differs.", "Pull it again: voltaire model pull."
        )
    return passed("model", size)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def running(settings: Settings) -> list[Finding]:
    """The backend, when it runs: state, warmth, and how long a warm first token takes."""
    from bot.cli.connect import backend_client

    async with backend_client(settings) as backend:
        try:
            status = await backend.status()
        except BackendUnavailable:
            return [
                Finding(
                    "backend",
                    "warn",
                    "No backend runs.",
                    "voltaire backend, or the unit voltaire-backend.",
                )
            ]
        server = status.backend
        if not server.serving:
            return [
                Finding(
                    "backend",
                    "warn",
                    f"The backend is {server.state}. {server.reason or ''}".strip(),
                    "voltaire status",
                )
            ]
        found = [passed("backend", f"{server.state}, {server.model}, window {server.n_ctx}")]
        return found + await _first_token(backend, server.warm)


async def tool_calls(settings: Settings) -> list[Finding]:
    """Whether the model that serves calls tools, and whether its template keeps the prefix."""
    from agent.errors import AgentError
    from agent.model import ModelRefused
    from bot.cli.connect import backend_client
    from bot.composition import open_agent

    async with backend_client(settings) as backend:
        try:
            server = (await backend.status()).backend
            if not server.serving:
                return []
            async with open_agent(settings, backend) as agent:
                found = await agent.selftests.of(server)
        except BackendUnavailable:
            return []
        except (AgentError, ModelRefused) as error:
            return [Finding("tool calls", "fail", str(error), "voltaire status")]
    return [_calls(found), *_template(found)]


def _calls(found: "SelfTest") -> Finding:
    status: Status = {"structured": "pass", "salvaged": "warn", "none": "fail"}[found.verdict]  # type: ignore[assignment]
    return Finding("tool calls", status, found.detail, found.remedy)


def _template(found: "SelfTest") -> list[Finding]:
    """What the template made of a whole conversation; nothing where the server cannot show it."""
    if found.template_error:
        said = f"The chat template refuses a conversation with tools: {found.template_error}"
        remedy = "Give its profile the model's own template ([template] file)."
        return [Finding("template", "fail", said, remedy)]
    if found.keeps_prefix is None:
        return []
    if found.keeps_prefix:
        return [passed("template", "Each prompt begins with the one before it.")]
    said = "The template rewrites earlier turns, so each message reads the conversation anew."
    remedy = "Switch thinking off in the profile ([template] kwargs), or use a template that keeps what was said."
    return [Finding("template", "warn", said, remedy)]


async def _first_token(backend: BackendClient, warm: Any) -> list[Finding]:
    from agent.errors import AgentError
    from agent.llm.openai import OpenAIModel
    from agent.messages import System, User
    from agent.model import ModelRefused, Request
    from agent.prompt import system_text
    from agent.tools.registry import chosen

    schemas = tuple(tool.schema for tool in chosen(()))
    request = Request((System(system_text()), User("Say ok.")), schemas, "none", 1)
    began = time.monotonic()
    try:
        async with OpenAIModel(backend.endpoint) as model:
            pieces = [piece async for piece in model.stream(request)]
    except (AgentError, ModelRefused) as error:
        return [
            Finding("first token", "fail", f"The model did not answer: {error}.", "voltaire status")
        ]
    cold = f"; cold {warm.seconds:.1f} s for {warm.tokens} tokens" if warm else ""
    return [passed("first token", f"warm {time.monotonic() - began:.2f} s{cold}")] if pieces else []
