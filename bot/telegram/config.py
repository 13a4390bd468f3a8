"""What the Telegram bot needs of the configuration."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from bot.commands.access import GroupPolicy
from bot.settings import Settings

OFFICIAL = "https://api.telegram.org"


@dataclass(frozen=True)
class TelegramConfig:
    """`run_dir` holds the lock. `timezone` is IANA; `repos` are the agent's."""

    token: str = field(repr=False)
    run_dir: Path
    base_url: str = OFFICIAL
    owners: frozenset[int] = frozenset()
    allow: frozenset[int] = frozenset()
    groups: GroupPolicy = "mention"
    language: str = "en"
    timezone: str = "UTC"
    webhook_url: str = ""
    webhook_listen: str = "127.0.0.1:8443"
    repos: tuple[str, ...] = ()
    start_seconds: float = 20.0  # for a Bot API server that never answered yet
    answer_seconds: float = 10.0  # how long Telegram may take to answer a call

    @property
    def root(self) -> str:
        return self.base_url.rstrip("/")

    @property
    def own_server(self) -> bool:
        """A Bot API server of one's own, which takes larger files."""
        return self.root != OFFICIAL

    @property
    def lock(self) -> Path:
        return (
            self.run_dir / f"telegram-{hashlib.sha256(self.token.encode()).hexdigest()[:16]}.lock"
        )


def telegram_config(settings: Settings) -> TelegramConfig:
    telegram = settings.telegram
    return TelegramConfig(
        token=telegram.token.get_secret_value(),
        run_dir=settings.state_dir / "run",
        base_url=telegram.base_url,
        owners=frozenset(telegram.owners),
        allow=frozenset(telegram.allow),
        groups=telegram.groups,
        language=telegram.language,
        timezone=settings.agent.timezone,
        webhook_url=telegram.webhook_url,
        webhook_listen=telegram.webhook_listen,
        repos=tuple(settings.agent.repos),
    )
