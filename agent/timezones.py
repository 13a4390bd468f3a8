"""Stored instants and time zones as calendar times; damaged values are no error."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

EPOCH = datetime.fromtimestamp(0, UTC)


@lru_cache(maxsize=64)
def known_zone(name: str) -> str:
    """The IANA name; "" where there is no such zone."""
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return ""
    return name


def local_time(at: float, zone: str) -> datetime:
    """An instant (seconds since the epoch) in an IANA zone; the epoch where no calendar has that instant."""
    here = ZoneInfo(known_zone(zone) or "UTC")
    try:
        return (EPOCH + timedelta(seconds=at)).astimezone(here)
    except (ValueError, OverflowError):
        return EPOCH.astimezone(here)
