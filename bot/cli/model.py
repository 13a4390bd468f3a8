"""voltaire model: which model runs, what fits the card, downloads, switching."""

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli import Failed, Misused, NoBackend
from bot.cli.options import json_option, runs, settings_of

if TYPE_CHECKING:
    from backend.client import BackendClient
    from backend.models.fit import FitReport, FreeMemory
    from backend.models.gguf_header import Header
    from backend.models.profile import Profile
    from bot.settings import Settings

GIB = 2**30


@click.group("model", help="Profiles: list them, see what fits, download, switch.")
def command() -> None:
    pass


@command.command("list")
@json_option
@click.pass_context
@runs
async def list_profiles(ctx: click.Context, as_json: bool) -> None:
    """Every profile, what it is good and bad at, and whether its file is here."""
    from backend.models import profile
    from bot.cli.connect import profiles_folder

    settings = settings_of(ctx)
    found = [profile.load(name, profiles_folder()) for name in profile.names(profiles_folder())]
    if as_json:
        click.echo(json.dumps([_fields(each, settings) for each in found], ensure_ascii=False))
        return
    for each in found:
        mark = "*" if each.name == settings.backend.profile else " "
        here = "" if _path(settings, each).is_file() else " (not downloaded)"
        click.echo(f"{mark} {each.name}: {each.title}{here}")
        click.echo(f"    good: {each.good}\n    bad:  {each.bad}")
        if each.reference.decode_tok_s:
            click.echo(f"    {each.reference.decode_tok_s:g} tokens/s ({each.reference.source})")


@command.command("fit")
@click.argument("model", default="")
@click.option("--vram", type=float, help="GiB on the card, in place of what is found.")
@click.option("--ram", type=float, help="GiB of host memory, in place of what is free.")
@json_option
@click.pass_context
@runs
async def fit(
    ctx: click.Context, model: str, vram: float | None, ram: float | None, as_json: bool
) -> int:
    """What a profile or a GGUF file needs, and which windows fit this machine."""
    from backend.models.fit import fit_report, verdict
    from backend.models.gguf_header import NotAModel
    from backend.models.pull import PullError
    from bot.cli import fit_table
    from bot.cli.checks.fit import budgets

    settings = settings_of(ctx)
    profile = _profile(model or settings.backend.profile)
    room, *smaller = budgets(profile, vram, ram)
    try:
        target, draft = await asyncio.to_thread(_headers, settings, profile)
    except FileNotFoundError as error:
        raise Failed(f"{error.filename} is not here.") from None
    except PullError as error:
        said = f"{profile.name} is not here, and what it needs cannot be read at the hub. {error}"
        raise Failed(f"{said} {fit_table.expected(profile)}".strip()) from None
    except NotAModel as error:
        raise Failed(str(error)) from None
    report = fit_report(profile, target, draft, room)
    said = verdict(profile.name, report)
    others = [(other, fit_report(profile, target, draft, other)) for other in smaller]
    if as_json:
        fields = _fit_fields(profile, room, report)
        fields["smaller_cards"] = [_fit_fields(profile, *other) for other in others]
        click.echo(json.dumps(fields, ensure_ascii=False))
        return 1 if said else 0
    fit_table.show(profile, room, report)
    click.echo(said or fit_table.outlook(profile, room, report))
    for card, on_it in others:
        fit_table.show(profile, card, on_it)
        click.echo(verdict(profile.name, on_it) or "It fits this card as well.")
    return 1 if said else 0


def _headers(settings: "Settings", profile: "Profile") -> tuple["Header", "Header | None"]:
    """Of the model and its draft: from the files, or from the hub while they are not here."""
    from functools import partial

    from bot.cli.connect import backend_config
    from bot.cli.outlook import header

    def say(line: str) -> None:
        click.echo(line, err=True)

    read = partial(header, models=backend_config(settings).models_folder, say=say)
    draft = read(profile.draft) if profile.draft else None
    return read(profile.model), draft


@command.command("pull")
@click.argument("model")
@click.pass_context
@runs
async def pull(ctx: click.Context, model: str) -> None:
    """Download a profile's model, or REPO/FILE from the hub; resumes where it was cut."""
    from backend.models.pull import PullError, pull
    from bot.cli.connect import backend_config

    settings = settings_of(ctx)
    try:
        path = await asyncio.to_thread(pull, _sources(model), backend_config(settings), click.echo)
    except PullError as error:
        raise Failed(str(error)) from None
    click.echo(f"Here: {path}")


@command.command("use")
@click.argument("model")
@click.pass_context
@runs
async def use(ctx: click.Context, model: str) -> None:
    """Switch the running backend to a profile, and keep it for the next start."""
    from backend.client import BackendRefused, BackendUnavailable
    from bot.cli.connect import backend_client
    from bot.setup import config_file

    settings = settings_of(ctx)
    profile = _profile(model)
    if not _path(settings, profile).is_file():
        raise Failed(f"{profile.name} is not downloaded yet: voltaire model pull {profile.name}")
    async with backend_client(settings) as backend:
        if await backend.answers():
            try:
                await _switch(backend, profile.name)
                await _first_use(settings, backend)
            except BackendRefused as error:
                raise Failed(str(error)) from None
            except BackendUnavailable as error:
                raise NoBackend(str(error)) from None
    config = _config(ctx)
    if config:
        values = config_file.read(config)
        config_file.put(values, "backend.profile", profile.name)
        config_file.write(config, values)
    click.echo(
        f"{profile.name} is in use"
        + ("." if config else "; put backend.profile into the configuration to keep it.")
    )


async def _switch(backend: "BackendClient", name: str) -> None:
    began, told = time.monotonic(), ""
    async for stand in backend.use_profile(name):
        if stand.state not in ("ready", "busy") and _told(stand) != told:
            told = _told(stand)
            click.echo(told, err=True)
    warm = (await backend.status()).backend.warm
    fixed = f"; {warm.tokens:,} fixed tokens are warm" if warm else ""
    click.echo(f"{name} serves after {time.monotonic() - began:.1f} s{fixed}.", err=True)


async def _first_use(settings: "Settings", backend: "BackendClient") -> None:
    """Whether it calls tools; tried when it serves for the first time."""
    from agent.errors import AgentError
    from agent.llm.selftest import sentence
    from agent.model import ModelRefused
    from bot.composition import open_agent

    try:
        async with open_agent(settings, backend) as agent:
            found = await agent.selftests.of((await backend.status()).backend)
    except (AgentError, ModelRefused) as error:
        click.echo(f"Its self-test failed: {error}", err=True)
        return
    click.echo(sentence(found), err=True)


def _config(ctx: click.Context) -> Path | None:
    from bot.settings import find_file

    config = find_file(ctx.obj.config)
    return config if config and config.exists() else None


def _told(stand: Any) -> str:
    done = f" {stand.done} of {stand.total}" if stand.total else ""
    return f"{stand.state}{done}" + (f": {stand.reason}" if stand.reason else "")


def _profile(name: str) -> "Profile":
    """A profile by name, or a bare GGUF file as one."""
    from backend.models.profile import Profile, ProfileError, Source, load
    from bot.cli.connect import profiles_folder

    if name.endswith(".gguf"):
        return Profile(name=Path(name).stem, title=name, context=32768, model=Source(path=name))
    try:
        return load(name, profiles_folder())
    except ProfileError as error:
        raise Misused(str(error)) from None


def _sources(model: str) -> list[Any]:
    from backend.models.profile import Source

    if model.count("/") >= 2:
        repo, _, name = model.rpartition("/")
        return [Source(repo=repo, file=name)]
    profile = _profile(model)
    return [source for source in (profile.model, profile.draft) if source]


def _path(settings: "Settings", profile: "Profile") -> Path:
    from backend.models.profile import locate
    from bot.cli.connect import backend_config

    return locate(profile.model, backend_config(settings).models_folder)


def _fields(profile: "Profile", settings: "Settings") -> dict[str, Any]:
    return {
        "name": profile.name,
        "title": profile.title,
        "engine": profile.engine,
        "context": profile.context,
        "verified": profile.verified,
        "good": profile.good,
        "bad": profile.bad,
        "decode_tok_s": profile.reference.decode_tok_s,
        "source": profile.reference.source,
        "path": str(_path(settings, profile)),
        "here": _path(settings, profile).is_file(),
        "current": profile.name == settings.backend.profile,
    }


def _fit_fields(profile: "Profile", free: "FreeMemory", report: "FitReport") -> dict[str, Any]:
    return {
        "profile": profile.name,
        "architecture": report.model.architecture,
        "weights": report.model.weights,
        "card": free.gpu,
        "host": free.host,
        "refusal": report.refusal,
        "fits": report.own.fits and not report.refusal,
        "rows": [
            {
                "context": row.options.context,
                "cache": row.options.cache_k,
                "weights": row.need.weights,
                "host_weights": row.need.host_weights,
                "kv": row.need.kv,
                "compute": row.need.compute,
                "experts_in_ram": row.options.cpu_experts,
                "fits": row.fits,
            }
            for row in report.rows
        ],
    }
