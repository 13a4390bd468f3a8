"""Turns a profile into the command line that starts it on this machine: which program, which flags."""

import asyncio
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

from backend import proc
from backend.config import BackendConfig
from backend.files import replace_text
from backend.models.gguf_header import NotAModel, picture_pixels, read_header, with_projector
from backend.models.memory import cached_layers
from backend.models.placement import (
    PCI_ORDER,
    DoesNotFit,
    Placement,
    list_devices,
    place,
)
from backend.models.profile import Profile, Source, locate
from backend.proc import output_of
from backend.protocol import PICTURE_PIXELS, Phrase
from backend.server import flag_spellings
from backend.server.diagnosis import Cause, diagnose
from backend.server.llama import LlamaServer, llama_server
from backend.server.process import ServerProcess, server_process

log = logging.getLogger(__name__)

MOST_CRAM_MIB, LEAST_CRAM_MIB = 16384, 256
SERVERS_CRAM_MIB = 8192  # llama-server's own default
CACHE_RAM = ("--cache-ram", "-cram")
EXPERTS, SPEC_TYPE, DRAFTS = "--n-cpu-moe", "--spec-type", "draft-simple"
THREADS, BATCH_THREADS = "--threads", "--threads-batch"
MMPROJ = "--mmproj"
TRACE_LEVEL = re.compile(r"\b4\s*[-:=]\s*trace")
HELP_SECONDS = 30.0
LOAD_LOOK_SECONDS = 0.1  # a server does not signal that it is ready
CUDA_CACHE_BYTES = str(4 << 30)  # the most that the driver accepts
NO_CARD = {"CUDA_VISIBLE_DEVICES": ""}
TEMPLATE_KEY = "tokenizer.chat_template"
NO_DATE = "given with each message"
# A call such as strftime_now("%Y-%m-%d"), whose format has a day, a month and a year.
WHOLE_DATE = re.compile(
    r"""strftime_now\(\s*(['"])(?=[^'"]*%-?[de])(?=[^'"]*%-?[mbB])(?=[^'"]*%[Yy])[^'"]*\1\s*\)"""
)
EMBEDDED = (sys.executable, "-m", "backend.embedded")
PACKAGE = Path(__file__).parents[1]


class CannotStart(Exception):
    """Nothing was started; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Binary:
    command: tuple[str, ...]
    env: Mapping[str, str]
    help: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything needed to start one server.

    `profile` is the requested one fitted to this machine; `changes` has a sentence for each thing that reduced
    it. Slot files can be reused between launches with the same `identity`.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    url: str
    api_key: str
    model: Path
    identity: str
    left_out: tuple[str, ...]
    profile: Profile
    changes: tuple[Phrase, ...]
    draft_mib: float = 0
    picture_pixels: int = PICTURE_PIXELS
    rolls_back: bool = False

    @property
    def cache_ram_bytes(self) -> float:
        """The size of the server's cache of prompts in RAM."""
        pairs = zip(self.argv, self.argv[1:], strict=False)
        mib = next((int(value) for flag, value in pairs if flag in CACHE_RAM), SERVERS_CRAM_MIB)
        return float("inf") if mib < 0 else float(mib << 20)


def with_context(config: BackendConfig, profile: Profile) -> Profile:
    """The profile with the context window from the configuration, if it sets one."""
    return replace(profile, context=config.context) if config.context else profile


async def prepare(config: BackendConfig, profile: Profile, *, measure: bool = True) -> Launch:
    """Check the model, its memory and the flags; CannotStart says in a sentence what is wrong.

    With `measure` False free memory is ignored, because a running server occupies it.
    """
    source = profile.model
    if config.model:  # another model, which the profile's projector does not fit
        source, profile = Source(path=config.model), profile.without_mmproj()
    model = model_file(config, profile, source)
    draft = model_file(config, profile, profile.draft) if profile.draft else None
    binary = await find_binary(config)
    profile = await asyncio.to_thread(with_vision, profile, config.models_folder, binary)
    placed = Placement(profile)
    if measure:
        placed = await placement(config, binary, profile, model, draft)
    profile = placed.profile
    profile = with_threads(profile, proc.cores())
    draft = draft if profile.draft else None
    for folder in (config.slots_folder, config.cuda_cache):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    required = {"-m": str(model), "-c": str(profile.context)}
    if draft:
        required["-md"] = str(draft)
    if profile.template_file:
        required["--chat-template-file"] = str(profile.template_file)
    mmproj = locate(profile.mmproj, config.models_folder) if profile.mmproj else None
    optional = {**extra_flags(config, profile, binary), **sized_flags(profile, model)}
    optional["-a"] = profile.name  # ik_llama.cpp's --help does not name it
    if mmproj:
        optional[MMPROJ] = str(mmproj)
    if not profile.template_file and (undated := await asyncio.to_thread(undated_template, model)):
        path = config.state_dir / "run" / "template.jinja"
        replace_text(path, undated)
        optional["--chat-template-file"] = str(path)
    optional = dict(flag_spellings.with_older_head(optional, binary.help))
    fitted = flag_spellings.fit(
        {**required, **profile.required}, optional, flag_spellings.known(binary.help)
    )
    if fitted.missing:
        lacking = ", ".join(fitted.missing)
        sentence = Phrase("The model server lacks the flag {flag}.", flag=lacking)
        raise CannotStart(Cause("unknown flag", sentence))
    port, key = str(free_port()), secrets.token_urlsafe(24)
    key_env, key_flags = pass_key(config, binary, key)
    # The prompt cache's size differs between starts and does not affect slot files.
    pairs = zip(("", *fitted.argv), fitted.argv, strict=False)
    stable = [part for before, part in pairs if before not in CACHE_RAM]
    identity = [binary.help, *map(str, (*stamp(model), *stamp(server_file(binary)))), *stable]
    return Launch(
        argv=(*binary.command, *fitted.argv, "--host", "127.0.0.1", "--port", port, *key_flags),
        env={**binary.env, **key_env, **placed.env, **({} if profile.gpu else NO_CARD)},
        url=f"http://127.0.0.1:{port}",
        api_key=key,
        model=model,
        identity=hashlib.sha256("\0".join(identity).encode()).hexdigest()[:24],
        left_out=tuple(flag for flag in fitted.left_out if flag in profile.optional),
        profile=profile,
        changes=placed.changes,
        draft_mib=draft.stat().st_size / (1 << 20) if draft else 0,
        picture_pixels=await asyncio.to_thread(picture_pixels, mmproj)
        if mmproj
        else PICTURE_PIXELS,
        rolls_back=await asyncio.to_thread(can_roll_back, model),
    )


@asynccontextmanager
async def loaded_server(
    launch: Launch, record: Path, longest: float
) -> AsyncIterator[tuple[ServerProcess, LlamaServer]]:
    """Run a server for the block, which begins once the model is loaded; CannotStart says why it is not within
    `longest` seconds. The file `record` identifies it while it runs."""
    began = monotonic()
    async with (
        server_process(launch.argv, launch.env, record) as process,
        llama_server(launch.url, launch.api_key) as server,
    ):
        while not await server.healthy():
            if process.exited:
                raise CannotStart(diagnose(await process.wait(), await process.final_log()))
            if monotonic() - began > longest:
                form = "The model did not finish loading ({seconds} s)."
                raise CannotStart(Cause("slow load", Phrase(form, seconds=round(longest))))
            await asyncio.sleep(LOAD_LOOK_SECONDS)
        yield process, server


def with_threads(profile: Profile, cores: int) -> Profile:
    """The profile with as many threads as suit this machine.

    While a model on the processor generates, one core stays free: all threads wait for the slowest at every
    token, so that one more program on the cores costs most of the speed (2 cores, a 1.5B model: 10 tokens/s,
    0.5 with other work on both). Prefill works in larger pieces and takes all cores.
    """
    threads = profile.flag(THREADS) or ""
    if threads.isdigit() and int(threads) > cores:
        return profile.with_flag(str(cores), THREADS)
    if profile.gpu or threads:
        return profile
    return profile.with_flag(str(max(1, cores - 1)), THREADS).with_flag(str(cores), BATCH_THREADS)


def model_file(config: BackendConfig, profile: Profile, source: Source) -> Path:
    path = locate(source, config.models_folder)
    if not path.is_file():
        form = "The model file is missing: {path}."
        if source.repo:
            form = "The model file is missing: {path}. Get it: voltaire model pull {name}."
        sentence = Phrase(form, path=str(path), name=profile.name)
        raise CannotStart(Cause("model missing", sentence))
    return path


def with_vision(profile: Profile, models: Path, binary: Binary) -> Profile:
    """The profile with its projector's size, or without a projector if the file is missing or the
    server does not support one."""
    if profile.mmproj is None:
        return profile
    if not locate(profile.mmproj, models).is_file() or MMPROJ not in flag_spellings.known(
        binary.help
    ):
        return profile.without_mmproj()
    return with_projector(profile, models)


async def placement(
    config: BackendConfig, binary: Binary, profile: Profile, model: Path, draft: Path | None
) -> Placement:
    """Where the profile runs on this machine; unchanged if the model's header cannot be used."""
    uses_gpu = profile.gpu and binary.command != EMBEDDED
    found = []
    if uses_gpu:
        found = await list_devices(binary.command, binary.env, binary.help, config.nvml)

    def measured() -> Placement:
        small = read_header(draft) if draft else None
        host_bytes = int(proc.available_mib() * (1 << 20))
        return place(profile, read_header(model), small, found, host_bytes)

    try:
        placed = await asyncio.to_thread(measured)
    except DoesNotFit as error:
        raise CannotStart(Cause("does not fit", Phrase.of(error))) from None
    except (NotAModel, OSError, LookupError, TypeError, ValueError):
        # A damaged model, or one of an unknown kind: the server's own error message is better.
        unsized = profile.flag(EXPERTS) == "auto"
        return Placement(profile.without_flags(EXPERTS) if unsized else profile)
    return replace(placed, env={**PCI_ORDER, **placed.env}) if found else placed


def extra_flags(config: BackendConfig, profile: Profile, binary: Binary) -> dict[str, str]:
    """Flags that are passed to every server that knows them."""
    # Older builds need --jinja to use the chat template with tools; newer ones always do.
    switches = {"--metrics": "", "--slots": "", "--jinja": ""}
    extras = {"--slot-save-path": str(config.slots_folder), **switches}
    if not profile.gpu:  # by itself a server puts on a card what fits there
        extras["--device"] = "none"
    if TRACE_LEVEL.search(binary.help):
        # Logs devices, layers and buffers; level 5 would log prompts too (llama.cpp b9752 and later).
        extras["-lv"] = "4"
    if profile.draft and DRAFTS in binary.help and profile.flag(SPEC_TYPE) is None:
        # Without it the draft model is loaded but not used (build 11434, measured).
        extras[SPEC_TYPE] = DRAFTS
    if profile.template:
        extras["--chat-template-kwargs"] = json.dumps(dict(profile.template))
    return extras


def undated_template(model: Path) -> str | None:
    """The model's chat template with a constant in place of today's date; None if it writes no date.

    A date in the system prompt would invalidate the cache of every conversation at midnight, and each
    message carries the time anyway. Dates that the template reads in parts, to compute with, stay.
    """
    try:
        values = read_header(model).values
    except (NotAModel, OSError):
        return None  # the server's own error message is better
    template = values.get(TEMPLATE_KEY)
    if not isinstance(template, str) or any(key.startswith(f"{TEMPLATE_KEY}.") for key in values):
        return None  # a file would also replace the model's second template, for tools
    undated = WHOLE_DATE.sub(f'"{NO_DATE}"', template)
    return undated if undated != template else None


def can_roll_back(model: Path) -> bool:
    """Whether the server reuses a prompt up to any token: every layer caches all tokens, and nothing else."""
    try:
        header = read_header(model)
        whole = not header.get("attention.sliding_window")
        return whole and all(layer.key for layer in cached_layers(header))
    except (NotAModel, OSError, LookupError, TypeError, ValueError):
        return False


def sized_flags(profile: Profile, model: Path) -> dict[str, str]:
    """The profile's optional flags; an "auto" prompt cache gets half of the RAM that the model leaves."""
    sized = dict(profile.optional)
    for name in CACHE_RAM:
        if sized.get(name) == "auto":
            on_host = 0 if profile.gpu else model.stat().st_size / (1 << 20)
            spare = (proc.available_mib() - on_host - 1024) / 2
            sized[name] = str(int(min(MOST_CRAM_MIB, max(LEAST_CRAM_MIB, spare))))
    return sized


def pass_key(
    config: BackendConfig, binary: Binary, key: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Environment and flags that pass the API key: a variable, else a file, else a (visible) argument."""
    if "LLAMA_API_KEY" in binary.help:
        return {"LLAMA_API_KEY": key}, ()
    if "--api-key-file" in flag_spellings.known(binary.help):
        path = config.state_dir / "run" / "key"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(key + "\n", "utf-8")
        return {}, ("--api-key-file", str(path))
    return {}, ("--api-key", key)


def free_port() -> int:
    """A port that the kernel gives nobody else for a minute; who binds to it sets SO_REUSEADDR, as servers do."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as listener:
        # A connection that was closed here keeps the port.
        with socket.create_connection(address := listener.getsockname()):
            listener.accept()[0].close()
        return int(address[1])


# -- which program --------------------------------------------------------------


def server_file(binary: Binary) -> Path:
    """The file that changes with the server's build."""
    if binary.command != EMBEDDED:
        return Path(binary.command[0])
    spec = find_spec("xllamacpp")
    return Path(spec.origin if spec and spec.origin else binary.command[0])


help_texts: dict[tuple[str, int, int], str] = {}  # by path, size and time of the binary


async def find_binary(config: BackendConfig) -> Binary:
    """The server to use and its `--help` text; CannotStart when it does not run."""
    command = configured_command(config)
    cache = {"CUDA_CACHE_PATH": str(config.cuda_cache), "CUDA_CACHE_MAXSIZE": CUDA_CACHE_BYTES}
    env = {**cache, **os.environ}
    if command == EMBEDDED:
        program, variable, folder = PACKAGE / "embedded/flags.py", "PYTHONPATH", PACKAGE.parent
    else:
        program, variable = Path(command[0]), "LD_LIBRARY_PATH"
        folder = program.resolve().parent  # builds for V100s ship the CUDA libraries beside it
    env[variable] = os.pathsep.join(filter(None, (str(folder), env.get(variable))))
    key = stamp(program)
    if key not in help_texts:
        help_texts[key] = await ask_help(command, env)
    return Binary(command, env, help_texts[key])


def configured_command(config: BackendConfig) -> tuple[str, ...]:
    if config.server == "embedded":
        return EMBEDDED
    if config.server == "auto":
        built = config.state_dir / "servers" / "llama-server"
        found = str(built) if built.exists() else shutil.which("llama-server")
        return (found,) if found else EMBEDDED
    path = Path(config.server).expanduser()
    if not path.is_file() or not os.access(path, os.X_OK):
        sentence = Phrase("The model server {path} is missing or not executable.", path=str(path))
        raise CannotStart(Cause("unknown", sentence))
    return (str(path.resolve()),)


async def ask_help(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    try:
        answer = await output_of((*command, "--help"), env=env, seconds=HELP_SECONDS)
    except TimeoutError:
        sentence = Phrase("The model server does not even answer --help.")
        raise CannotStart(Cause("unknown", sentence)) from None
    except OSError as error:
        form, why = "The model server {path} cannot be run: {why}.", error.strerror or ""
        sentence = Phrase(form, path=command[0], why=why)
        raise CannotStart(Cause("server missing", sentence)) from None
    if not flag_spellings.known(answer.text):
        raise CannotStart(diagnose(answer.code, answer.text.splitlines()))
    return answer.text


def stamp(path: Path) -> tuple[str, int, int]:
    """Path, size and modification time, as a cache key."""
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
