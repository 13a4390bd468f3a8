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
    """Convert seconds since the epoch to a datetime in an IANA zone; the epoch itself if out of range."""
    here = ZoneInfo(known_zone(zone) or "UTC")
    try:
        return (EPOCH + timedelta(seconds=at)).astimezone(here)
    except (ValueError, OverflowError):
        return EPOCH.astimezone(here)
