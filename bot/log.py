"""Logging: wide single lines on stderr, and no secret in any of them."""

import logging
import re
import sys

# A bot token, wherever it stands (URLs of the Bot API hold it).
_TOKEN = re.compile(r"\b\d{3,}:[A-Za-z0-9_-]{3,}")


class _Redacted(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _TOKEN.sub("[token]", super().format(record))


def start_logging(verbose: bool, *, service: bool = False) -> None:
    """Log to stderr: warnings only, information for a service, everything when verbose.

    Under systemd the journal adds the time.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacted("%(levelname)s %(name)s %(message)s"))
    level = logging.DEBUG if verbose else logging.INFO if service else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("httpx", "httpcore", "aiosqlite", "apscheduler", "telegram.ext", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # A gateway's page in place of JSON is told with a traceback; whoever called tells it in a line.
    logging.getLogger("telegram.request").setLevel(logging.CRITICAL)
