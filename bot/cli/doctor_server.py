"""Checks of `voltaire doctor`: GPU, server binary, model file and whether it fits; the running backend,
its time to first token, tool calls, the chat template."""

import asyncio
import shlex
import time
from pathlib import Path
from typing import Literal

from agent.errors import AgentError
from agent.llm.openai import OpenAIModel
from agent.llm.selftest import SelfTest
from agent.messages import System, User
from agent.model import ModelRefused, Request
from agent.prompt import system_text, use_instructions
from agent.tools.registry import chosen
from backend.client import BackendUnavailable
from backend.files import sha256
from backend.gpu.nvml import NO_LIBRARY, InstalledGpu, installed_gpus
from backend.models.fit import fit_report, verdict
from backend.models.gguf_header import NotAModel, read_header, with_projector
from backend.models.outlook import GIB, Machine
from backend.models.profile import PACKAGE, Profile, ProfileError, locate
from backend.server.known_faults import known_faults
from backend.server.launch import EMBEDDED, CannotStart, find_binary, prepare
from bot.agent_config import instructions_of, open_agent
from bot.cli.backend_config import backend_config, next_profile
from bot.cli.connect import backend_client
from bot.cli.doctor_machine import Finding, failure, passed, warning
from bot.settings import Settings

# The CUDA 12 builds for Volta need driver 570 to 580: an older one gives "device kernel image is
# invalid" or falls back to the CPU silently, a newer one drops the card (facts of V100 builds).
VOLTA = (7, 0)
VOLTA_DRIVERS = (570, 580)

# What helps where NVML is installed and cannot be used, by its code (nvml.h).
REMEDIES = {
    4: "sudo usermod -aG video,render $USER, then log in again.",
    9: "sudo modprobe nvidia; dmesg says why the driver is not loaded, such as Secure Boot or a new kernel.",
    18: "The driver was updated while the old one runs: restart this computer.",
    999: "In a container restart that, else this computer; dmesg names Xid errors.",
}

CHECKOUT = PACKAGE.parent


async def card(settings: Settings) -> list[Finding]:
    found = await asyncio.to_thread(installed_gpus)
    if found.problem and (settings.backend.kind == "external" or found.code == NO_LIBRARY):
        return [passed("gpu", f"No GPU ({found.problem}); the model runs without one.")]
    if found.problem:
        detail = f"No GPU can be used: {found.problem}."
        return [warning("gpu", detail, REMEDIES.get(found.code, REMEDIES[999]))]
    if not found.gpus:
        remedy = "Check power and seating; dmesg names Xid errors."
        return [warning("gpu", "The driver knows no GPU.", remedy)]
    return [driver_finding(gpu, found.driver) for gpu in found.gpus]


def driver_finding(gpu: InstalledGpu, driver: str | None) -> Finding:
    compute = ".".join(map(str, gpu.capability)) if gpu.capability else "unknown"
    detail = f"{gpu.name}, compute {compute}, driver {driver or 'unknown'}"
    low, high = VOLTA_DRIVERS
    if gpu.capability != VOLTA or not driver or low <= int(driver.split(".")[0]) <= high:
        return passed("gpu", detail)
    remedy = f"Install a driver from {low} to {high}: a newer one drops Volta, an older one lacks its CUDA 12."
    return failure("gpu", f"{detail}: this driver does not fit the card.", remedy)


async def binary(settings: Settings) -> list[Finding]:
    """The server binary, and whether it has the flags of the profile."""
    if settings.backend.kind == "external":
        return []
    config = backend_config(settings)
    try:
        server = await find_binary(config)
        command = server.command
        name = "The embedded server" if command == EMBEDDED else Path(command[0]).name
        profile = next_profile(settings)
        launch = await prepare(config, profile, measure=False)
    except ProfileError as error:
        return [failure("server", str(error), "voltaire model list")]
    except CannotStart as error:
        if error.cause.kind == "model missing":  # `model` reports that
            return [passed("server", f"{name} answers.")]
        remedy = "voltaire server get, voltaire server build, or name one that is there (backend.server)."
        return [failure("server", str(error), remedy)]
    detail = f"{name} takes the flags of profile {profile.name}"
    if launch.left_out:
        detail = f"{detail}, but lacks {', '.join(launch.left_out)}."
        return [warning("server", detail, "Build a newer one: voltaire server build.")]
    faults = await known_faults(server, launch.profile)
    told = [warning("server build", fault.says, fault.source) for fault in faults]
    return [passed("server", f"{detail}."), *told]


async def model(settings: Settings) -> list[Finding]:
    """Whether the model file is here, undamaged, with the checksum of its profile."""
    if settings.backend.kind == "external":
        return []
    try:
        profile = next_profile(settings)
    except ProfileError as error:
        return [failure("model", str(error), "voltaire model list")]
    source = profile.model
    path = locate(source, backend_config(settings).models_folder)
    if not path.is_file():
        return [failure("model", f"{path} is missing.", how_to_replace(profile))]
    try:
        header = await asyncio.to_thread(read_header, path)
    except (NotAModel, OSError) as error:
        return [failure("model", str(error), how_to_replace(profile))]
    detail = f"{path.name}, {header.architecture}, {path.stat().st_size / 2**20:,.0f} MiB"
    if source.sha256 and await asyncio.to_thread(sha256, path) != source.sha256:
        wrong = f"{detail}: it is damaged, its checksum differs."
        return [failure("model", wrong, how_to_replace(profile))]
    return [passed("model", detail)]


def how_to_replace(profile: Profile) -> str:
    if profile.model.path:
        return "Bring the file back, or choose another model: voltaire model use NAME"
    if not profile.model.builtin:
        return f"voltaire model pull {profile.name}"
    if (CHECKOUT / ".git").exists():
        return f"git -C {shlex.quote(str(CHECKOUT))} checkout -- backend/{profile.model.builtin}"
    return "Install Voltaire anew: the file came with it."


async def fit(settings: Settings) -> list[Finding]:
    """Whether the model fits the GPU, or the RAM where there is none.

    Nothing where the model file is missing: `model` reports that.
    """
    if settings.backend.kind == "external":
        return []
    folder = backend_config(settings).models_folder
    try:
        profile = next_profile(settings)
        profile = with_projector(profile, folder)
        target, *draft = [read_header(locate(source, folder)) for source in profile.needed]
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


async def running(settings: Settings) -> list[Finding]:
    """The backend's state, and the time to first token with a warm prefix."""
    async with backend_client(settings) as backend:
        try:
            status = await backend.status()
            server = status.backend
        except BackendUnavailable:
            remedy = "voltaire run, or the unit voltaire-backend where there is one."
            return [warning("backend", "No backend runs.", remedy)]
        if not server.serving:
            detail = f"The backend is {server.state}. {server.reason or ''}".strip()
            return [warning("backend", detail, "voltaire status")]
        detail = f"{server.state}, {server.model}, window {server.n_ctx}"
        warm = server.warm
        cold = (
            f"; cold {warm.seconds:.1f} s for {warm.tokens} tokens"
            if warm and warm.source == "prefill"
            else ""
        )
        findings = [passed("backend", detail)]
        if (second := status.embedding) and second.state != "ready":
            why = second.reason or f"{second.profile} is {second.state}."
            findings.append(warning("search by meaning", why, "voltaire status"))
        schemas = tuple(tool.schema for tool in chosen(()))
        use_instructions(instructions_of(settings))
        request = Request((System(system_text()), User("Say ok.")), schemas, "none", 1)
        began = time.monotonic()
        try:
            async with OpenAIModel(backend.endpoint) as model:
                pieces = [piece async for piece in model.stream(request)]
        except (AgentError, ModelRefused) as error:
            detail = f"The model did not answer: {error}."
            return [*findings, failure("first token", detail, "voltaire status")]
        warm_s = f"warm {time.monotonic() - began:.2f} s{cold}"
        return [*findings, passed("first token", warm_s)] if pieces else findings


async def tool_calls(settings: Settings) -> list[Finding]:
    """Whether the served model calls tools, and whether its chat template keeps the prefix."""
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
            return [failure("tool calls", str(error), "voltaire status")]
    statuses: dict[str, Literal["pass", "warn", "fail"]] = {
        "structured": "pass",
        "constrained": "pass",
        "salvaged": "warn",
    }
    status = statuses.get(found.verdict, "fail")
    calls = Finding("tool calls", status, found.detail, found.remedy)
    return [calls, *template(found)]


def template(found: SelfTest) -> list[Finding]:
    """How the template rendered a whole conversation; nothing where the server cannot render one."""
    if found.template_error:
        detail = f"The chat template refuses a conversation with tools: {found.template_error}"
        remedy = "Give its profile the model's own template ([template] file)."
        return [failure("template", detail, remedy)]
    if found.keeps_prefix is None:
        return []
    if found.keeps_prefix:
        return [passed("template", "Each prompt begins with the one before it.")]
    if found.keeps_turn:
        return [
            passed("template", "A turn that is over is rendered anew, which is read between turns.")
        ]
    detail = "The template rewrites earlier calls, so each one reads the turn anew."
    remedy = "Switch thinking off in the profile ([template] kwargs), or use a template that keeps what was said."
    return [warning("template", detail, remedy)]
