"""voltaire model: which model runs, what fits the card, downloads, switching."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import click

from agent.errors import AgentError
from agent.llm.selftest import sentence
from agent.model import ModelRefused
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.models.profile import Profile, Source, load, locate, names
from backend.models.pull import PullError
from backend.models.pull import pull as download
from bot.cli.command import Failed, NoBackend, Options, json_option, pass_options, runs
from bot.cli.connect import backend_client, backend_config, profile_of, profiles_folder
from bot.cli.model_fit import fit
from bot.composition import open_agent
from bot.settings import Settings, find_file
from bot.setup import config_file


@click.group("model", help="Profiles: list them, see what fits, download, switch.")
def command() -> None:
    pass


command.add_command(fit)


@command.command("list")
@json_option
@pass_options
@runs
async def list_profiles(options: Options, as_json: bool) -> None:
    """Every profile, what it is good and bad at, and whether its file is here."""
    settings = options.settings
    profiles = [load(name, profiles_folder()) for name in names(profiles_folder())]
    if as_json:
        click.echo(json.dumps([fields(each, settings) for each in profiles], ensure_ascii=False))
        return
    for each in profiles:
        mark = "*" if each.name == settings.backend.profile else " "
        here = "" if model_path(settings, each).is_file() else " (not downloaded)"
        click.echo(f"{mark} {each.name}: {each.title}{here}")
        click.echo(f"    good: {each.good}\n    bad:  {each.bad}")
        if each.reference.decode_tok_s:
            click.echo(f"    {each.reference.decode_tok_s:g} tokens/s ({each.reference.source})")


def fields(profile: Profile, settings: Settings) -> dict[str, Any]:
    path = model_path(settings, profile)
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
        "path": str(path),
        "here": path.is_file(),
        "current": profile.name == settings.backend.profile,
    }


@command.command("pull")
@click.argument("model")
@pass_options
@runs
async def pull(options: Options, model: str) -> None:
    """Download a profile's model, or REPO/FILE from the hub; resumes where it was cut."""
    if model.count("/") >= 2:
        repo, _, name = model.rpartition("/")
        sources = [Source(repo=repo, file=name)]
    else:
        sources = profile_of(model).sources
    config = backend_config(options.settings)
    try:
        path = await asyncio.to_thread(download, sources, config, click.echo)
    except PullError as error:
        raise Failed(str(error)) from None
    click.echo(f"Here: {path}")


@command.command("use")
@click.argument("model")
@pass_options
@runs
async def use(options: Options, model: str) -> None:
    """Switch the running backend to a profile, and keep it for the next start."""
    settings = options.settings
    profile = profile_of(model)
    if not model_path(settings, profile).is_file():
        raise Failed(f"{profile.name} is not downloaded yet: voltaire model pull {profile.name}")
    async with backend_client(settings) as backend:
        if await backend.answers():
            try:
                await switch(backend, profile.name)
                await selftest(settings, backend)
            except BackendRefused as error:
                raise Failed(str(error)) from None
            except BackendUnavailable as error:
                raise NoBackend(str(error)) from None
    config = find_file(options.config)
    if config and config.exists():
        values = config_file.read(config)
        config_file.put(values, "backend.profile", profile.name)
        config_file.write(config, values)
        click.echo(f"{profile.name} is in use.")
    else:
        keep = "put backend.profile into the configuration to keep it"
        click.echo(f"{profile.name} is in use; {keep}.")


async def switch(backend: BackendClient, name: str) -> None:
    began, last = time.monotonic(), ""
    async for state in backend.use_profile(name):
        line = state.state + (f" {state.done} of {state.total}" if state.total else "")
        line += f": {state.reason}" if state.reason else ""
        if state.state not in ("ready", "busy") and line != last:
            click.echo(line, err=True)
            last = line
    warm = (await backend.status()).backend.warm
    fixed = f"; {warm.tokens:,} fixed tokens are warm" if warm else ""
    click.echo(f"{name} serves after {time.monotonic() - began:.1f} s{fixed}.", err=True)


async def selftest(settings: Settings, backend: BackendClient) -> None:
    """Whether it calls tools; tried when it serves for the first time."""
    try:
        async with open_agent(settings, backend) as agent:
            found = await agent.selftests.of((await backend.status()).backend)
    except (AgentError, ModelRefused) as error:
        click.echo(f"Its self-test failed: {error}", err=True)
    else:
        click.echo(sentence(found), err=True)


def model_path(settings: Settings, profile: Profile) -> Path:
    return locate(profile.model, backend_config(settings).models_folder)
