"""voltaire model: which model runs, what fits the card, downloads, switching."""

import asyncio
import json
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from agent.errors import AgentError
from agent.llm.selftest import SelfTest, record_key, sentence
from agent.model import ModelRefused
from backend.client import BackendClient, BackendUnavailable
from backend.files import ForeignFolder
from backend.models.fit import Fit, FitReport, FreeMemory, fit_report, sum_text, verdict
from backend.models.found import found_models
from backend.models.gguf_header import with_projector
from backend.models.outlook import (
    GIB,
    MIB,
    Machine,
    Outlook,
    candidates,
    expected_outlook,
    profile_candidate,
    profile_headers,
    size_of,
    size_text,
)
from backend.models.profile import (
    Profile,
    ProfileError,
    Source,
    embedders,
    load,
    load_embedder,
    locate,
    names,
)
from backend.models.pull import PullError, open_to_sandboxes, speech_folder, speech_sources
from backend.protocol import ServerStatus
from backend.server.launch import LEAST_CRAM_MIB, MOST_CRAM_MIB
from backend.server.managed import CHOICE, save_choice
from bot import config_file
from bot.cli.backend_config import (
    backend_config,
    model_named,
    next_profile,
    profile_of,
    profiles_folder,
)
from bot.cli.command import Failed, Options, json_option, runs
from bot.cli.connect import backend_client, running_agent
from bot.cli.holder_client import record_act
from bot.cli.progress import pull_files, sign_of_life
from bot.cli.rehearsal import command as rehearsal
from bot.settings import Settings, find_file
from bot.state import DATABASE, make_private, open_state_read_only

BAR = 32


embedding_option = click.option("--embedding", is_flag=True, help="For search by meaning.")


command = click.Group("model", help="List, fit, download, switch and rehearse models.")
command.add_command(rehearsal)


@command.command("list")
@embedding_option
@click.option("--all", "every", is_flag=True, help="Describe those that do not fit, too.")
@json_option
@runs
async def list_profiles(options: Options, embedding: bool, every: bool, as_json: bool) -> None:
    """List profiles, and what each is good and bad at. Says whether its file is here, and which is in use (*)."""
    settings, own = options.settings, profiles_folder()
    read, found = (load_embedder, embedders(own)) if embedding else (load, names(own))
    profiles = [read(name, own) for name in found]
    current = settings.backend.embedding
    if not embedding:
        used = await profile_in_use(settings)
        current = used.name
        if current not in found:  # a file
            profiles.insert(0, used)
    here = await asyncio.to_thread(Machine.here, backend_config(settings).models_folder)
    tested = await selftests(settings, profiles)
    rows = [
        {
            **fields(each, settings, here),
            "current": each.name == current,
            "selftest": tested.get(each.name),
        }
        for each in profiles
    ]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    room = {True: "fits this machine", False: "does not fit", None: "fit not known"}
    left_out: list[str] = []
    for each, row in zip(profiles, rows, strict=True):
        if row["fits"] is False and not (row["current"] or row["here"] or every):
            left_out.append(each.name)
            continue
        mark = "*" if row["current"] else " "
        missing = "" if row["here"] else " to download"
        size = f"{size_text(row['bytes'])}{missing}" if row["bytes"] else "size not known"
        click.echo(f"{mark} {each.name}: {each.title} ({size}; {room[row['fits']]})")
        told = {"good": each.good, "bad": each.bad, "tried": row["selftest"]}
        for name, text in told.items():
            if text:
                click.echo(f"    {name + ':':<7}{text}")
        if each.mmproj:
            click.echo(f"    sees pictures{projector_missing(each, here)}")
        known = each.for_machine(gpu=bool(here.cards)).reference
        if known.decode_tok_s:
            click.echo(f"    {known.decode_tok_s:g} tokens/s ({known.source})")
    if left_out:
        click.echo(f"\nDo not fit this machine (--all describes them): {', '.join(left_out)}.")


async def profile_in_use(settings: Settings) -> Profile:
    """The profile that the running backend serves, else that the next start will."""
    chosen = await asyncio.to_thread(next_profile, settings)
    async with backend_client(settings) as backend:
        with suppress(BackendUnavailable):
            server = (await backend.status()).backend
            if server.profile and server.profile != chosen.name:
                with suppress(ProfileError):
                    return await asyncio.to_thread(profile_of, server.profile)
                file = server.model or server.profile
                told = Source(path=file)  # its folder is not told, nor whether it wants a card
                return Profile(server.profile, file, server.n_ctx or 0, told, gpu=False)
    return chosen


async def selftests(settings: Settings, profiles: Sequence[Profile]) -> dict[str, str]:
    """The stored results of the tool self-test, by profile."""
    if not (settings.state_dir / DATABASE).exists():
        return {}
    told: dict[str, str] = {}
    async with open_state_read_only(settings) as store:
        for each in profiles:
            file = model_path(settings, each).name
            served = ServerStatus(state="stopped", profile=each.name, model=file)
            if found := await store.key_values.get(record_key(served), SelfTest):
                told[each.name] = sentence(found)
    return told


def projector_missing(profile: Profile, machine: Machine) -> str:
    """Say what to do if the model is here without its projector."""
    here = [locate(source, machine.models).is_file() for source in profile.sources]
    missing = here[0] and not here[-1]
    return f", once its projector is here: voltaire model pull {profile.name}" if missing else ""


def fields(profile: Profile, settings: Settings, machine: Machine) -> dict[str, Any]:
    path = model_path(settings, profile)
    return {
        "name": profile.name,
        "title": profile.title,
        "engine": profile.engine,
        "context": profile.context,
        "verified": profile.verified,
        "sees": profile.mmproj is not None,
        "good": profile.good,
        "bad": profile.bad,
        "decode_tok_s": profile.reference.decode_tok_s,
        "source": profile.reference.source,
        "path": str(path),
        "here": path.is_file(),
        "bytes": size_of(profile, machine),
        "fits": profile_candidate(profile, machine).runs,
    }


@command.command("pull")
@click.argument("model")
@runs
async def pull(options: Options, model: str) -> None:
    """Download a profile's model, or REPO/FILE of Hugging Face. For speech: whisper-base (or -tiny, -small,
    -large-v3-turbo) hears, piper-en_US-lessac-medium is a voice. Resumes where it was cut."""
    config = backend_config(options.settings)
    if speech := speech_sources(model):
        sources, config = list(speech), speech_folder(config)
    elif model.count("/") >= 2:
        repo, _, name = model.rpartition("/")
        sources = [Source(repo=repo, file=name)]
    else:
        own = profiles_folder()
        known = load_embedder(model, own) if model in embedders(own) else profile_of(model)
        sources = known.sources
    path = await pull_files(sources, config)
    click.echo(f"Here: {path}")
    if speech:
        await asyncio.to_thread(open_to_sandboxes, config.models_folder)
    else:
        embedding = "--embedding " * (model in embedders(profiles_folder()))
        named = shlex.quote(str(path)) if "/" in model else model
        click.echo(f"Use it: voltaire model use {embedding}{named}")


@command.command("use")
@click.argument("model")
@embedding_option
@runs
async def use(options: Options, model: str, embedding: bool) -> None:
    """Switch to a profile or a GGUF file, now and for every start. A profile's file is downloaded first."""
    if embedding:  # the configuration of the machine is root's
        await use_embedder(options, options.settings_as_root, model)
        return
    settings = options.settings
    if settings.backend.kind == "external":
        raise Failed("The model server is another's (backend.kind): its model is backend.model.")
    config = backend_config(settings)
    make_private(settings.state_dir)
    name = await model_named(model, config, click.echo)
    profile = await asyncio.to_thread(profile_of, name)
    async with backend_client(settings) as backend:
        if await backend.answers():
            await switch(backend, name)
        else:
            save_choice(config, name, datetime.now(ZoneInfo(config.timezone)))
    click.echo(f"{profile.name} is in use, at each start, too ({config.state_dir / CHOICE}).")
    await record_act(settings, act="model", to=profile.name)
    await print_selftest(settings, profile)


async def use_embedder(options: Options, settings: Settings, name: str) -> None:
    """Configure the model of search by meaning, for the next start; "none" for no such search."""
    if name != "none":
        profile = load_embedder(name, profiles_folder())
        if not model_path(settings, profile).is_file():
            raise Failed(f"{name} is not downloaded yet: voltaire model pull {name}")
    config = find_file(options.config)
    if not config or not config.exists():
        raise Failed("There is no configuration file to keep it in: run `voltaire setup`.")
    values = config_file.read(config)
    config_file.put(values, "backend.embedding", "" if name == "none" else name)
    config_file.write(config, values)
    await record_act(settings, act="embedding", to=name)
    click.echo("Kept. It begins when the backend and the bot are started again.")


async def switch(backend: BackendClient, name: str) -> None:
    """Switch the running backend and print its states. Raises BackendRefused and BackendUnavailable."""
    began, last = time.monotonic(), ""
    with sign_of_life("switching"):
        async for state in backend.use_profile(name):
            line = state.state + (f" {state.done} of {state.total}" if state.total else "")
            line += f": {state.reason}" if state.reason else ""
            if state.state not in ("ready", "busy") and line != last:
                click.echo(line, err=True)
                last = line
    warm = (await backend.status()).backend.warm
    fixed = f"; {warm.tokens:,} fixed tokens are warm" if warm else ""
    click.echo(f"{name} serves after {time.monotonic() - began:.1f} s{fixed}.", err=True)


async def print_selftest(settings: Settings, profile: Profile) -> None:
    """Print whether the model can call tools; if that was never tested, test it now."""
    told = (await selftests(settings, [profile])).get(profile.name)
    if told is None:
        click.echo("Trying once whether it calls tools; Ctrl-C leaves that out.", err=True)
        try:
            async with running_agent(settings) as agent:
                with sign_of_life("asking it"):
                    await agent.ready()
                    server = (await agent.backend.status()).backend
                    told = sentence(await agent.selftests.of(server))
        except (AgentError, ForeignFolder, ModelRefused) as error:
            click.echo(f"It could not be tried: {error}", err=True)
            return
    click.echo(told)


def model_path(settings: Settings, profile: Profile) -> Path:
    return locate(profile.model, backend_config(settings).models_folder)


# -- what fits ----------------------------------------------------------------


@command.command("fit")
@click.argument("model", default="")
@click.option(
    "--vram",
    type=float,
    multiple=True,
    help="GiB on the card, in place of what is found; once for each of several.",
)
@click.option("--ram", type=float, help="GiB of host memory, in place of what is free.")
@json_option
@runs
async def fit(
    options: Options, model: str, vram: tuple[float, ...], ram: float | None, as_json: bool
) -> int:
    """Show what a profile or GGUF file needs, and which windows fit. Without a name: which models fit, best first."""
    settings = options.settings
    machine = await asyncio.to_thread(Machine.here, backend_config(settings).models_folder)
    if vram:
        machine = replace(machine, cards=vram)
    if ram is not None:
        machine = replace(machine, host=int(ram * GIB))
    if not model:
        with sign_of_life("looking at this machine's models"):
            listed = await asyncio.to_thread(all_candidates, machine)
            with suppress(ProfileError):
                used = await asyncio.to_thread(next_profile, settings)
                if settings.backend.kind == "managed" and used.name not in {o.name for o in listed}:
                    own = await asyncio.to_thread(profile_candidate, used, machine)
                    listed.insert(0, replace(own, place="this configuration"))
        print_candidates(listed, machine, as_json=as_json)
        return 0
    profile = profile_of(model).for_machine(gpu=bool(machine.cards))
    try:
        read = partial(profile_headers, say=partial(click.echo, err=True))
        with sign_of_life("reading what it needs"):
            target, draft = await asyncio.to_thread(read, profile, machine.models)
            profile = await asyncio.to_thread(with_projector, profile, machine.models)
    except FileNotFoundError as error:
        raise Failed(f"{error.filename} is not here.") from None
    except PullError as error:
        unread = (
            f"{profile.name} is not here, and what it needs cannot be read at Hugging Face. {error}"
        )
        known = expected_outlook(profile, machine).line if machine.cards else ""
        raise Failed(f"{unread} {known}".strip()) from None
    reports = [(free, fit_report(profile, target, draft, free)) for free in machine.free(profile)]
    (free, report), *smaller = reports
    misfit = verdict(profile.name, report)
    if as_json:
        fields = report_fields(profile, free, report)
        fields["smaller_cards"] = [report_fields(profile, *other) for other in smaller]
        click.echo(json.dumps(fields, ensure_ascii=False))
        return 1 if misfit else 0
    print_table(profile, free, report)
    click.echo(misfit or outlook(profile, free, report))
    if report.draft_refusal:
        click.echo(report.draft_refusal)
    for other, on_it in smaller:
        print_table(profile, other, on_it)
        click.echo(verdict(profile.name, on_it) or "It fits this card as well.")
    return 1 if misfit else 0


def all_candidates(machine: Machine) -> list[Outlook]:
    """Every profile, and the GGUF files of other programs on this machine. Blocks."""
    profiles = [load(name, profiles_folder()) for name in names(profiles_folder())]
    return candidates(machine, profiles, found_models())


def print_candidates(found: Sequence[Outlook], machine: Machine, *, as_json: bool) -> None:
    if as_json:
        rows = [{**asdict(each), "path": each.path and str(each.path)} for each in found]
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    cards = ", ".join(f"{size:g}" for size in machine.cards)
    card = f"cards of {cards} GiB" if cards else "no card"
    click.echo(f"This machine: {card}, {size_text(machine.host)} of RAM free.")
    wanting = [each.name for each in found if not each.runs and not machine.cards]
    heads = {
        True: "Fits, best first:",
        None: "Not known before it is here:",
        False: "Does not fit:",
    }
    for fits, head in heads.items():
        group = [each for each in found if each.runs is fits and each.name not in wanting]
        if group:
            click.echo(f"\n{head}")
        if group and fits is False:
            click.echo(f"  {', '.join(each.name for each in group)}")
            click.echo("      voltaire model fit NAME says what is missing")
            continue
        for each in group:
            click.echo(f"  {each.line}")
            click.echo(f"      {next_step(each)}")
    if wanting:
        click.echo(f"\nWithout a card none of these is worth it: {', '.join(wanting)}.")
        click.echo("What one of 16 GiB would run: voltaire model fit --vram 16")
    click.echo(
        "\nA GGUF of your own, whatever it is: make demo MODEL=FILE.gguf, or voltaire run --model FILE.gguf"
    )


def next_step(each: Outlook, serves: str = "make demo MODEL=") -> str:
    """The command that puts a model to use; for a file, it is `serves` with the path behind it."""
    if each.place:
        return f"{serves}{shlex.quote(str(each.path))}  ({size_text(each.size or 0)}, from {each.place})"
    if each.path:
        return f"voltaire model use {each.name}"
    size = f"  ({size_text(each.size)})" if each.size else ""
    return f"voltaire model pull {each.name}{size}"


def report_fields(profile: Profile, free: FreeMemory, report: FitReport) -> dict[str, Any]:
    rows = [
        {
            "context": row.options.context,
            "cache": row.options.cache_k,
            **asdict(row.need),
            "experts_in_ram": row.options.cpu_experts,
            "fits": row.fits,
        }
        for row in report.rows
    ]
    return {
        "profile": profile.name,
        "architecture": report.model.architecture,
        "weights": report.model.weights,
        "card": free.gpu,
        "host": free.host,
        "refusal": report.refusal,
        "draft_refusal": report.draft_refusal,
        "fits": report.own.fits and not report.refusal,
        "rows": rows,
    }


def print_table(profile: Profile, free: FreeMemory, report: FitReport) -> None:
    model, own = report.model, report.own.options
    card = f"card {size_text(free.gpu)}" if own.gpu else "no card"
    click.echo(
        f"{profile.name}: {model.architecture}, {size_text(model.weights)} of weights;"
        f" {card}, RAM {size_text(free.host)}"
    )
    click.echo(
        f"  {'window':>7}  {'cache':5}  {'weights':>9}  {'KV':>9}  {'compute':>9}"
        f"  {'experts in RAM':>14}  {'RAM':>9}  fits"
    )
    for row in report.rows:
        same = (row.options.context, row.options.cache_k) == (own.context, own.cache_k)
        click.echo(("* " if same else "  ") + line(row, free))


def line(row: Fit, free: FreeMemory) -> str:
    need, options = row.need, row.options
    used, whole = (need.gpu, free.gpu) if need.on_gpu else (need.host, free.host)
    filled = round(min(1, used / max(1, whole)) * BAR)
    weights = need.weights if need.on_gpu else need.host_weights
    sizes = "  ".join(f"{size_text(size):>9}" for size in (weights, need.kv, need.compute))
    experts = f"{options.cpu_experts} layers" if options.cpu_experts else "-"
    return (
        f"{options.context:>7}  {options.cache_k:5}  {sizes}  {experts:>14}  {size_text(need.host):>9}"
        f"  {'yes' if row.fits else 'no '} {'█' * filled}{'·' * (BAR - filled)}"
    )


def outlook(profile: Profile, free: FreeMemory, report: FitReport) -> str:
    """Describe what will run, how fast, and what the remaining memory is used for."""
    options, known = report.own.options, profile.reference
    text = f"It runs with a window of {options.context:,} tokens and a {options.cache_k} cache"
    text += f", experts of {options.cpu_experts} layers in RAM" if options.cpu_experts else ""
    text += f": {sum_text(report.own)} on the card." if options.gpu else "."
    if known.decode_tok_s:
        text += f" {known.decode_tok_s:g} tokens/s reported ({known.source})."
    if profile.flag("--cache-ram") == "auto":
        left = (free.host - report.own.need.host) / MIB
        prompts = min(MOST_CRAM_MIB, max(LEAST_CRAM_MIB, (left - 1024) / 2))
        text += f" {size_text(prompts * MIB)} of RAM will keep prompts."
    return text
