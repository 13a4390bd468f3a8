"""How a profile becomes a command line for the server that this machine has."""

import asyncio
import hashlib
import json
import os
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from backend import proc
from backend.config import BackendConfig
from backend.models.devices import PCI_ORDER, Device, list_devices
from backend.models.gguf_header import NotAModel, read_header
from backend.models.placement import DoesNotFit, Placement, place
from backend.models.profile import Profile, Source, locate
from backend.server import flags
from backend.server.binary import EMBEDDED, Binary, CannotStart, find, stamp
from backend.server.diagnosis import Cause

MOST_CRAM_MIB, LEAST_CRAM_MIB = 16384, 256
EXPERTS, THREADS, SPEC_TYPE, DRAFTS = "--n-cpu-moe", "--threads", "--spec-type", "draft-simple"
_TRACE = re.compile(r"\b4\s*[-:=]\s*trace")


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything to start one server.

    `profile` is the one asked for as it fits this machine, `changed` a sentence
    where that is less; `identity` names what slot files are good for.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    url: str
    api_key: str
    model: Path
    identity: str
    left_out: tuple[str, ...]
    profile: Profile
    changed: str
    draft_mib: float = 0


def wanted(config: BackendConfig, profile: Profile) -> Profile:
    """The profile with the window that the configuration asks for."""
    return replace(profile, context=config.context) if config.context else profile


async def prepare(config: BackendConfig, profile: Profile, *, measure: bool = True) -> Launch:
    """Check the model, the room for it and the flags; CannotStart in one plain sentence when they do not do.

    With `measure` False memory is not looked at: a running server holds it.
    """
    wanted_file = Source(path=config.model) if config.model else profile.model
    model = _model(config, profile, wanted_file)
    binary = await find(config)
    placed = await _placed(config, binary, profile, model) if measure else Placement(profile)
    profile = _within_cores(placed.profile)
    slots_folder(config).mkdir(parents=True, exist_ok=True)
    port, key = _free_port(), secrets.token_urlsafe(24)
    names = flags.known(binary.help)
    required = {**_own(config, profile, model), **profile.required}
    optional = {**_extras(config, profile, binary), **_sized(profile, model)}
    fitted = flags.fit(required, optional, names)
    if fitted.missing:
        lacking = ", ".join(fitted.missing)
        raise CannotStart(Cause("unknown flag", f"The model server lacks the flag {lacking}."))
    env, secret = _key(config, binary, key)
    listen = ("--host", "127.0.0.1", "--port", str(port))
    return Launch(
        argv=(*binary.command, *fitted.argv, *listen, *secret),
        env={**env, **placed.env},
        url=f"http://127.0.0.1:{port}",
        api_key=key,
        model=model,
        identity=_identity(binary, model, fitted.argv),
        left_out=tuple(flag for flag in fitted.left_out if flag in profile.optional),
        profile=profile,
        changed=placed.changed,
        draft_mib=_draft_mib(config, profile),
    )


async def _placed(
    config: BackendConfig, binary: Binary, profile: Profile, model: Path
) -> Placement:
    """Where it goes on this machine; as it stands where the model's header says too little."""
    draft = _model(config, profile, profile.draft) if profile.draft else None
    found: list[Device] = []
    if profile.gpu and binary.command != EMBEDDED:
        found = await list_devices(binary.command, binary.env, binary.help, config.nvml)
    try:
        placed = await asyncio.to_thread(_measured, profile, model, draft, found)
    except DoesNotFit as error:
        raise CannotStart(Cause("does not fit", str(error))) from None
    except (NotAModel, OSError, LookupError, TypeError, ValueError):
        # A damaged model, or one of an unknown kind: the server will say it better.
        unsized = profile.flag(EXPERTS) == "auto"
        return Placement(profile.without_flags(EXPERTS) if unsized else profile)
    return replace(placed, env={**PCI_ORDER, **placed.env}) if found else placed


def _measured(profile: Profile, model: Path, draft: Path | None, found: list[Device]) -> Placement:
    small = read_header(draft) if draft else None
    return place(profile, read_header(model), small, found, int(proc.available_mib() * (1 << 20)))


def models_folder(config: BackendConfig) -> Path:
    return config.models_dir or config.state_dir / "models"


def slots_folder(config: BackendConfig) -> Path:
    return config.state_dir / "slots"


def _model(config: BackendConfig, profile: Profile, source: Source) -> Path:
    path = locate(source, models_folder(config))
    if not path.is_file():
        remedy = f" Get it: voltaire model pull {profile.name}." if source.repo else ""
        raise CannotStart(Cause("model missing", f"The model file is missing: {path}.{remedy}"))
    return path


def _draft_mib(config: BackendConfig, profile: Profile) -> float:
    return _model(config, profile, profile.draft).stat().st_size / (1 << 20) if profile.draft else 0


def _own(config: BackendConfig, profile: Profile, model: Path) -> dict[str, str]:
    given = {"-m": str(model), "-c": str(profile.context), "-a": profile.name}
    if profile.draft:
        given["-md"] = str(_model(config, profile, profile.draft))
    if profile.template_file:
        given["--chat-template-file"] = str(profile.template_file)
    return given


def _within_cores(profile: Profile) -> Profile:
    """Never more threads than there are cores for us: they would wait for each other at each token."""
    wanted, cores = profile.flag(THREADS), len(os.sched_getaffinity(0))
    if wanted is None or not wanted.isdigit() or int(wanted) <= cores:
        return profile
    return profile.with_flag(str(cores), THREADS)


def _extras(config: BackendConfig, profile: Profile, binary: Binary) -> dict[str, str]:
    """What we like to have of any server, and can do without."""
    extras = {"--slot-save-path": str(slots_folder(config)), "--metrics": "", "--slots": ""}
    if _TRACE.search(binary.help):
        # Names devices, layers and buffers; at 5 prompts would be in the log (llama.cpp b9752 and later).
        extras["-lv"] = "4"
    if profile.draft and DRAFTS in binary.help and profile.flag(SPEC_TYPE) is None:
        # Without it the draft model is loaded and nobody asks it (build 11434, measured).
        extras[SPEC_TYPE] = DRAFTS
    if profile.template:
        extras["--chat-template-kwargs"] = json.dumps(dict(profile.template))
    return extras


def _sized(profile: Profile, model: Path) -> dict[str, str]:
    """The profile's optional flags; the prompt cache gets half of what RAM the model leaves."""
    sized = dict(profile.optional)
    for name in ("--cache-ram", "-cram"):
        if sized.get(name) == "auto":
            on_host = 0 if profile.gpu else model.stat().st_size / (1 << 20)
            spare = (proc.available_mib() - on_host - 1024) / 2
            sized[name] = str(int(min(MOST_CRAM_MIB, max(LEAST_CRAM_MIB, spare))))
    return sized


def _key(config: BackendConfig, binary: Binary, key: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The key by environment, else by file; by argument, which others can see, only as a last way."""
    env = dict(binary.env)
    if "LLAMA_API_KEY" in binary.help:
        return {**env, "LLAMA_API_KEY": key}, ()
    if "--api-key-file" in flags.known(binary.help):
        path = config.state_dir / "run" / "key"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(key + "\n", "utf-8")
        return env, ("--api-key-file", str(path))
    return env, ("--api-key", key)


def _identity(binary: Binary, model: Path, argv: tuple[str, ...]) -> str:
    # A prompt cache's size differs from start to start and changes no slot file.
    stable = [
        part for part in argv if not part.isdigit() or argv[argv.index(part) - 1] not in _CRAM
    ]
    parts = [binary.help, *map(str, stamp(model)), *binary.command, *stable]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


_CRAM = ("--cache-ram", "-cram")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
