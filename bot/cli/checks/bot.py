"""What the bot needs: its database, and its account at Telegram."""

from agent.store import open_store
from agent.store.backup import integrity_error
from agent.store.errors import StoreError
from bot.cli.checks import Finding, failure, passed, warning
from bot.settings import Settings
from bot.setup.telegram import get_me
from bot.state import DATABASE

RESTORE = "voltaire restore FILE, from a backup."


async def database(settings: Settings) -> list[Finding]:
    path = settings.state_dir / DATABASE
    if not path.exists():
        return [passed("database", "Not made yet.")]
    try:
        async with open_store(path) as store:
            problem = await integrity_error(store)
            uncertain = (await store.outbox.counts()).get("uncertain", 0)
            aside = await store.set_aside.count()
    except StoreError as error:
        return [failure("database", str(error), RESTORE)]
    if problem:
        return [failure("database", f"{path} is damaged: {problem}.", RESTORE)]
    detail = f"{path.stat().st_size / 2**20:.1f} MiB, intact"
    detail += f"; {uncertain} uncertain sends" if uncertain else ""
    if aside:
        detail += f"; {aside} entries that could not be handled are set aside"
        return [warning("database", detail, f"They are kept in the table set_aside of {path}.")]
    return [passed("database", detail)]


async def telegram(settings: Settings) -> list[Finding]:
    token = settings.telegram.token.get_secret_value()
    if not token:
        return [warning("telegram", "No token is set.", "voltaire setup")]
    found = await get_me(settings.telegram.base_url, token)
    if isinstance(found, str):
        return [failure("telegram", found, "Check the token with @BotFather, and the network.")]
    findings = [passed("telegram", f"@{found['username']} answers")]
    if not settings.telegram.owners:
        remedy = "voltaire setup makes a pairing link."
        findings.append(warning("telegram", "No owner is configured.", remedy))
    if found.get("can_join_groups") and settings.telegram.groups == "off":
        detail = "The bot can be added to groups, though groups are off."
        findings.append(warning("telegram", detail, "@BotFather: /setjoingroups, Disable."))
    return findings
