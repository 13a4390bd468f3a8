"""A zone in which it is about noon: no day ends there while tests run."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

NOON = f"Etc/GMT{datetime.now(UTC).hour - 12:+}"
TODAY = datetime.now(ZoneInfo(NOON)).date()
