"""What people would lose or miss: the database, and Telegram."""

from bot.cli.checks import Finding, passed
from bot.settings import Settings
from bot.setup.telegram import get_me


async def database(settings: Settings) -> list[Finding]:
    from agent.store import open_store
    from agent.store.backup import integrity_error
    from agent.store.errors import StoreError
    from bot.state import DATABASE

    path = settings.state_dir / DATABASE
    if not path.exists():
        return [passed("database", "Not made yet.")]
    try:
        async with open_store(path) as store:
            problem = await integrity_error(store)
            waiting = (await store.outbox.counts()).get("uncertain", 0)
    except StoreError as error:
        return [Finding("database", "fail", str(error), "voltaire restore FILE, from a backup.")]
    if problem:
        return [
            Finding(
                "database",
                "fail",
                f"{path} is damaged: {problem}.",
                "voltaire restore FILE, from a backup.",
            )
        ]
    detail = f"{path.stat().st_size / 2**20:.1f} MiB, intact"
    return [passed("database", detail + (f"; {waiting} uncertain sends" if waiting else ""))]


async def telegram(settings: Settings) -> list[Finding]:
    token = settings.telegram.token.get_secret_value()
    if not token:
        return [Finding("telegram", "warn", "No token is set.", "voltaire setup")]
    found = await get_me(settings.telegram.base_url, token)
    if isinstance(found, str):
        return [
            Finding("telegram", "fail", found, "Check the token with @BotFather, and the network.")
        ]
    findings = [passed("telegram", f"@{found['username']} answers")]
    if not settings.telegram.owners:
        findings.append(
            Finding(
                "telegram",
                "warn",
                "No owner is configured.",
                "voltaire setup makes a pairing link.",
            )
        )
    if found.get("can_join_groups") and settings.telegram.groups == "off":
        findings.append(
            Finding(
                "telegram",
                "warn",
                "The bot can be added to groups, though groups are off.",
                "@BotFather: /setjoingroups, Disable.",
            )
        )
    return findings
