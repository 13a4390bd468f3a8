"""Spans of days or times, and how they are told."""

from datetime import date, datetime, timedelta

DAY = timedelta(days=1)
Time = date | datetime


def span_text(start: Time, end: Time) -> str:
    """A span in words, such as "Sat 2026-11-28 09:00 to 09:30", or days; `end` is excluded."""
    if isinstance(start, datetime):
        assert isinstance(end, datetime)
        form = "%H:%M" if start.date() == end.date() else "%a %Y-%m-%d %H:%M"
        return f"{start:%a %Y-%m-%d %H:%M}" + (f" to {end:{form}}" if start < end else "")
    last = end - DAY
    more = f" to {last:%a %Y-%m-%d}" if start < last else ""
    return f"{start:%a %Y-%m-%d}{more}, all day"
