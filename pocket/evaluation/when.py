"""Times in words, far enough to tell whether two phrases mean the same.

"in 20 min" and "in twenty minutes" are one time, "every weekday at 8" and
"weekdays 08:00" another.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45,
    "fifty": 50, "ninety": 90,
}  # fmt: skip
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_HOURS = {"noon": (12, 0), "midday": (12, 0), "midnight": (0, 0), "lunch": (12, 0),
          "morning": (9, 0), "afternoon": (15, 0), "evening": (19, 0), "tonight": (20, 0)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Due:
    """Once at `at`, or by `repeat` ("day", "weekday", "month 1", a weekday, "1800 s") from then on."""

    at: datetime
    repeat: str = ""


def understand(words: str, now: datetime) -> Due | None:
    """What `words` mean at `now`; None when they are not understood."""
    text = _spelled(words)
    relative = _relative(text)
    if relative:
        return Due(now + relative, f"{relative.total_seconds():.0f} s" if "every" in text else "")
    repeat, day = _repeat(text), _day(text, now)
    clock = _clock(text)
    if re.search(r"\b\d{1,2} \d", text) or (clock is None and not (repeat or day)):
        return None
    hour, minute = clock or (9, 0)
    at = (day or now).replace(hour=hour, minute=minute)
    if at <= now and not day:
        at += timedelta(days=1)
    return Due(_first(at, repeat), repeat)


def tell(due: Due) -> str:
    """The time as the product tells it back."""
    if not due.repeat:
        return f"once, on {due.at:%a %d %b %Y} at {due.at:%H:%M}"
    if due.repeat.endswith(" s"):
        return f"every {int(due.repeat[:-2]) // 60} minutes"
    day = f"on day {due.repeat[6:]} of each month" if due.repeat[:5] == "month" else _often(due)
    coming = ", ".join(f"{at:%a %d %b %H:%M}" for at in islice(_times(due), 3))
    return f"{day} at {due.at:%H:%M}; next: {coming}"


def _often(due: Due) -> str:
    return f"every {due.repeat.capitalize() if due.repeat in WEEKDAYS else due.repeat}"


def _times(due: Due) -> Iterator[datetime]:
    at = due.at
    while True:
        yield at
        at = _first(at + timedelta(days=1), due.repeat)


def _spelled(words: str) -> str:
    text = (
        re.sub(r"[,.]", " ", words.lower())
        .replace("half an hour", "30 minutes")
        .replace("half hour", "30 minutes")
    )
    text = text.replace("quarter of an hour", "15 minutes").replace(
        "an hour and a half", "90 minutes"
    )
    text = re.sub(r"\bhalf past (\w+)", lambda m: f"{_NUMBERS.get(m[1], m[1])}:30", text)
    text = re.sub(r"\bquarter past (\w+)", lambda m: f"{_NUMBERS.get(m[1], m[1])}:15", text)
    text = re.sub(r"\bcouple of\b", "2", text)
    return " ".join(str(_NUMBERS.get(word, word)) for word in text.split())


def _relative(text: str) -> timedelta | None:
    unit = r"(s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)"
    whole = rf"(?:in|after|every|within)? ?((?:\d+(?:\.\d+)? ?{unit}(?: (?:and )?|$))+)(?:from now|time|later)?"
    found = re.fullmatch(whole, text.strip() + " ") or re.fullmatch(whole, text.strip())
    if not found:
        return None
    parts = re.findall(rf"(\d+(?:\.\d+)?) ?{unit}\b", found[1])
    return timedelta(seconds=sum(float(n) * _UNITS[name[0]] for n, name in parts))


def _repeat(text: str) -> str:
    if re.search(r"weekdays?|working day|workday|mon(day)?[ -]+(to|fri)", text):
        return "weekday"
    for name in WEEKDAYS:
        if re.search(rf"(every|each) {name[:3]}\w*|\b{name}s\b|weekly.*{name[:3]}", text):
            return name
    if re.search(r"month", text):
        found = re.search(r"(\d+)(?:st|nd|rd|th)|\b(first)\b", text)
        return f"month {found[1] or 1}" if found else "month 1"
    if re.search(
        r"every ?(day|morning|evening|night|afternoon)|each (day|morning|evening|night)|daily|nightly",
        text,
    ):
        return "day"
    return ""


def _day(text: str, now: datetime) -> datetime | None:
    if "day after tomorrow" in text:
        return now + timedelta(days=2)
    if re.search(r"\b(tomorrow|tmrw|tmw)\b", text):
        return now + timedelta(days=1)
    if re.search(r"\b(today|tonight|this (morning|afternoon|evening))\b", text):
        return now
    for number, name in enumerate(WEEKDAYS):
        if re.search(rf"\b{name[:3]}({name[3:]})?s?\b", text):
            return now + timedelta(days=(number - now.weekday() - 1) % 7 + 1)
    return None


def _clock(text: str) -> tuple[int, int] | None:
    late = bool(re.search(r"\bpm\b|\d ?pm\b|evening|tonight|afternoon|night\b", text))
    found = re.search(r"\b(\d{1,2})[:h](\d\d)\b", text) or re.search(
        r"\b(\d{1,2})()(?: ?[ap]m\b| ?o'?clock| ?h\b)", text
    )
    found = found or re.search(r"(?:\bat|@|[a-z]) ?(\d{1,2})()(?![\w:])", text)
    if not found:
        return next((clock for word, clock in _HOURS.items() if word in text), None)
    hour, minute = int(found[1]), int(found[2] or 0)
    if re.search(r"\d ?am\b", text):
        late = False
    hour = (
        hour + 12
        if late and hour < 12
        else 0
        if hour == 12 and re.search(r"\d ?am\b", text)
        else hour
    )
    return (hour, minute) if hour < 24 and minute < 60 else None


def _first(at: datetime, repeat: str) -> datetime:
    while not _falls(at, repeat):
        at += timedelta(days=1)
    return at


def _falls(at: datetime, repeat: str) -> bool:
    if repeat == "weekday":
        return at.weekday() < 5
    if repeat in WEEKDAYS:
        return at.weekday() == WEEKDAYS.index(repeat)
    if repeat.startswith("month "):
        return at.day == min(int(repeat[6:]), 28)
    return True
