"""Reads a phrase clause by clause, in any order: every, on Monday, at 8, in 20 minutes, UTC."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from agent.schedule.times import words
from agent.schedule.times.cron import read_cron
from agent.schedule.times.draft import Draft, NotUnderstood
from agent.schedule.times.rule import Rule
from agent.schedule.times.words import AMOUNT, MONTH, NUMBER, ORDINAL, UNIT, WEEKDAY

__all__ = ["NotUnderstood", "read", "split"]

_ASK = "I did not understand when that is. Say it like: in 20 minutes, tomorrow at 9, every weekday at 8."
_JOIN = r"(?:\s*(?:,|and|&|or|plus)\s*)+"
_TIME = (
    r"(?:(?:half|quarter) (?:past|to) \d{1,2}(?!\d)|\d{1,2}[:.h]\d{2}(?:\s*[ap]\.?m\.?)?"
    r"|\d{1,2}\s*(?:[ap]\.?m\b\.?|o'?clock|h\b|uhr)|noon|midday|midnight)"
)
_BARE = r"\d{1,2}(?!\d|[:.]\d|\s*(?:st|nd|rd|th|%|" + UNIT[3:-1] + r")\b)"


def read(phrase: str, now: datetime) -> Rule:
    """The rule that a phrase means. `now` is aware, in the chat's zone (a ZoneInfo).

    Raises NotUnderstood with the question to ask back.
    """
    draft, rest = _scan(phrase, now)
    if rest:
        raise NotUnderstood(
            _ASK if rest == _tidy(phrase) else f"I did not understand “{rest}”. When do you mean?"
        )
    return draft.rule()


def split(text: str, now: datetime) -> tuple[Rule, str]:
    """The rule at a text's beginning or end, and the task that is the rest."""
    draft, rest = _scan(text, now)
    if rest and rest != _tidy(text):
        return draft.rule(), _original(text, rest)
    for start in _word_starts(text):
        draft, rest = _scan(text[start:], now)
        if not rest:
            return draft.rule(), text[:start].strip(" ,;:")
    raise NotUnderstood(_ASK if rest else "What shall I do then?")


def _original(text: str, rest: str) -> str:
    """The rest in its own letters: scanning works on tidied, lower-case text."""
    tail = re.split(r"\s+", text.strip())[-len(rest.split()) :]
    return re.sub(r"^(?:to|please|:|,|-)\s+", "", " ".join(tail).lstrip(" ,;:-"))


def _word_starts(text: str) -> list[int]:
    return [match.start() for match in re.finditer(r"(?<!\S)\S", text)][1:]


def _tidy(phrase: str) -> str:
    return re.sub(r"\s+", " ", phrase.strip().lower().rstrip(".!?"))


def _scan(phrase: str, now: datetime) -> tuple[Draft, str]:
    """The draft of as many clauses as stand at the beginning, and what is left."""
    draft = Draft(now, str(now.tzinfo))
    rest = _tidy(phrase)
    while rest:
        taken = _clause(draft, rest)
        if not taken:
            break
        rest = rest[taken:].lstrip(" ,;:")
    return draft, rest


def _clause(draft: Draft, text: str) -> int:
    for pattern, apply in _clauses():
        if match := pattern.match(text):
            apply(draft, match)
            return match.end()
    return 0


# -- what each clause says ----------------------------------------------------


def _cron(draft: Draft, match: re.Match[str]) -> None:
    draft.cron = read_cron(match[0], draft.zone)


def _in(draft: Draft, match: re.Match[str]) -> None:
    parts = [_amount(found) for found in re.findall(AMOUNT, match[0])]
    total = sum(count * unit for count, unit in parts)
    total += 0.5 * parts[-1][1] if "and a half" in match[0] else 0
    draft.span = (draft.span or timedelta()) + timedelta(seconds=total)


def _amount(text: str) -> tuple[float, int]:
    """A number and the seconds of its unit."""
    found = re.match(rf"(?P<count>{NUMBER})(?: of)?(?: an?)?\s*(?P<unit>{UNIT})$", text)
    assert found
    return words.number(found["count"]), words.seconds(found["unit"])


def _every_span(draft: Draft, match: re.Match[str]) -> None:
    draft.repeat = True
    count, unit = match["count"], match["unit"]
    many = 2 if count in ("other", "second") else int(words.number(count)) if count else 1
    if match["half"]:
        draft.span = timedelta(seconds=words.seconds(unit) / 2)
    elif unit.startswith("w"):
        draft.unit, draft.step = "week", many
    elif unit.startswith("d") and many == 1:
        draft.unit = "day"
    else:
        draft.span = timedelta(seconds=many * words.seconds(unit))


def _every_long(draft: Draft, match: re.Match[str]) -> None:
    draft.repeat = True
    unit = match["unit"] or match["adverb"]
    draft.unit = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}.get(
        unit, unit
    )
    draft.unit = {"yearly": "year", "annually": "year"}.get(draft.unit, draft.unit)
    if draft.unit == "quarter":
        draft.unit, draft.months = "month", {1, 4, 7, 10}
    if draft.unit == "hour":
        draft.span = timedelta(hours=1)


def _every(draft: Draft, _match: re.Match[str]) -> None:
    draft.repeat = True


def _every_other(draft: Draft, _match: re.Match[str]) -> None:
    draft.repeat, draft.step = True, 2


def _workdays(draft: Draft, match: re.Match[str]) -> None:
    draft.repeat = draft.repeat or match[0].endswith("s")
    draft.weekdays |= set(range(5)) if "end" not in match[0] else {5, 6}


def _range_of_days(draft: Draft, match: re.Match[str]) -> None:
    first, last = words.weekday(match["first"]), words.weekday(match["last"])
    draft.repeat = True
    draft.weekdays |= {(first + n) % 7 for n in range((last - first) % 7 + 1)}


def _weekdays(draft: Draft, match: re.Match[str]) -> None:
    named = re.findall(WEEKDAY, match["days"])
    draft.weekdays |= {words.weekday(day) for day in named}
    draft.repeat = draft.repeat or all(day.endswith("days") for day in named)
    draft.next_week = draft.next_week or (match["which"] or "").strip() == "next"


def _nth_weekday(draft: Draft, match: re.Match[str]) -> None:
    draft.nth = words.ordinal(match["nth"])
    draft.weekdays.add(words.weekday(match["day"]))
    draft.repeat = draft.repeat or bool(match["each"])


def _day_of_month(draft: Draft, match: re.Match[str]) -> None:
    draft.days |= {words.ordinal(day) for day in re.findall(ORDINAL, match["days"])}
    if draft.days - {-1, *range(1, 32)}:
        raise NotUnderstood("A month has at most 31 days. Which day do you mean?")
    draft.repeat = draft.repeat or bool(match["each"])


def _named_date(draft: Draft, match: re.Match[str]) -> None:
    day, month = int(re.sub(r"\D", "", match["day"])), words.month(match["month"])
    if draft.repeat:
        draft.days, draft.months = {day}, {month}
        return
    draft.day = _date(match["year"], month, day, draft.now)


def _iso_date(draft: Draft, match: re.Match[str]) -> None:
    draft.day = _date(match["year"], int(match["month"]), int(match["day"]), draft.now)


def _date(year: str | None, month: int, day: int, now: datetime) -> date:
    try:
        found = date(int(year or now.year), month, day)
    except ValueError:
        raise NotUnderstood("There is no such date. Which day do you mean?") from None
    return found if year or found >= now.date() else _date(str(now.year + 1), month, day, now)


def _relative_day(draft: Draft, match: re.Match[str]) -> None:
    word = match[0]
    ahead = 2 if "after" in word else 1 if "tomorrow" in word else 0
    draft.day = draft.now.date() + timedelta(days=ahead)
    if word == "tonight":
        draft.daypart = words.DAYPARTS["night"]


def _daypart(draft: Draft, match: re.Match[str]) -> None:
    draft.daypart = words.DAYPARTS[match["part"].rstrip("s")]
    if match["this"] and "every" not in match["this"]:
        draft.day = draft.day or draft.now.date()
    draft.repeat = draft.repeat or match["part"].endswith("s")


def _clock(draft: Draft, match: re.Match[str]) -> None:
    found = re.findall(rf"{_TIME}|{_BARE}", match["times"])
    draft.hours12 = any(re.fullmatch(r"\d{1,2}", each) for each in found)
    draft.times += [_minutes(each) for each in found]


def _minutes(text: str) -> int:
    """Minutes after midnight of one time of day."""
    if text in words.DAYPARTS:
        return words.DAYPARTS[text]
    hour, minute = [*map(int, re.findall(r"\d+", text)), 0][:2]
    if text.startswith(("half", "quarter")):
        part = 30 if text.startswith("half") else 15
        return hour * 60 + (part if "past" in text else -part)
    if meridiem := re.search(r"[ap]\.?m", text):
        if not 1 <= hour <= 12:
            raise NotUnderstood(f"{text} is no time of day. At what time?")
        hour = hour % 12 + (12 if meridiem[0][0] == "p" else 0)
    if hour > 23 or minute > 59:
        raise NotUnderstood(f"{text} is no time of day. At what time?")
    return hour * 60 + minute


def _zone(draft: Draft, match: re.Match[str]) -> None:
    name = match["zone"].replace(" ", "_")
    if name in words.AMBIGUOUS_ZONES:
        raise NotUnderstood(f"{name.upper()} means several zones. Which city's time do you mean?")
    draft.zone = words.ZONES.get(name) or _city(name)
    draft.now = draft.now.astimezone(ZoneInfo(draft.zone))


def _city(name: str) -> str:
    found = [
        zone
        for zone in available_timezones()
        if name in (zone.lower(), zone.lower().rpartition("/")[2])
    ]
    if not found:
        raise NotUnderstood(
            f"I do not know the time zone “{name.replace('_', ' ')}”. Which city's time do you mean?"
        )
    return min(found, key=len)


@cache
def _clauses() -> list[tuple[re.Pattern[str], Callable[[Draft, re.Match[str]], None]]]:
    on = r"(?:on |from |starting )?(?:the )?"
    each = r"(?P<each>(?: day)? of (?:the|every|each|a) months?| every month| each month| monthly)?"
    span = rf"{AMOUNT}(?:(?:,? and |,? ?){AMOUNT})*(?: and a half)?"
    times = rf"(?P<times>(?:{_TIME}|{_BARE})(?:{_JOIN}(?:at )?(?:{_TIME}|{_BARE}))*)"
    said = [
        (r"(?:[\d*/,-]+ ){2}[\d*/,a-z-]+ [\d*/,a-z-]+ [\d*/,a-z-]+(?!\S)", _cron),
        (rf"(?:in|after) (?:about )?{span}(?: from now)?", _in),
        (rf"{span} from now", _in),
        (rf"(?:every|each) (?:other|second)(?= {WEEKDAY})", _every_other),
        (rf"(?:every|each) (?P<half>half (?:an? )?)?(?:(?P<count>{NUMBER}|other|second)\s*)?(?P<unit>{UNIT})\b(?! of)", _every_span),
        (r"(?:(?:every|each|once an?|once per) (?P<unit>month|year|quarter)|(?P<adverb>hourly|daily|weekly|monthly|yearly|annually))\b", _every_long),
        (rf"{on}(?P<nth>first|second|third|fourth|last|[1-4](?:st|nd|rd|th)) (?P<day>{WEEKDAY})\b(?P<each> (?:of|in) (?:the|every|each|a) month| every month| each month| monthly)?", _nth_weekday),
        (rf"{on}(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)\.?(?: of)? (?P<month>{MONTH})\b(?:,? (?P<year>\d{{4}}))?", _named_date),
        (rf"{on}(?P<month>{MONTH}) (?:the )?(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)\b(?!:)(?:,? (?P<year>\d{{4}}))?", _named_date),
        (r"(?:on )?(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:t(?=\d))?", _iso_date),
        (r"(?:on )?(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})?", _iso_date),
        (r"(?:every |each |on )?(?:weekdays?|work(?:ing )?days?|business days?|weekends?)\b", _or_every(_workdays)),
        (rf"(?:every |each |on )?(?P<first>{WEEKDAY})\s*(?:-|–|to|through|till|until)\s*(?P<last>{WEEKDAY})\b", _range_of_days),
        (rf"(?:on )?(?P<which>next |this |coming )?(?P<days>{WEEKDAY}(?:{_JOIN}(?:on )?{WEEKDAY})*)\b", _weekdays),
        (rf"{on}(?P<days>(?:{ORDINAL})(?:{_JOIN}(?:the )?(?:{ORDINAL}))*)(?! hour| minute)\b{each}", _day_of_month),
        (r"(?:the )?day after tomorrow|today|tomorrow|tonight", _relative_day),
        (r"(?P<this>this |every |each )?(?:in the |at |the )?(?P<part>mornings?|afternoons?|evenings?|nights?|lunchtime)\b", _or_every(_daypart)),
        (rf"(?:at |around |by |@ ?){times}", _clock),
        (rf"(?P<times>{_TIME}(?:{_JOIN}{_TIME})*)", _clock),
        (r"(?:in )?(?P<zone>utc|gmt|cet|cest|est|edt|pst|pdt|mst|mdt|jst|cst|ist|ast|bst|[a-z]+/[a-z_/]+)\b(?: time)?", _zone),
        (r"(?:in |, )?(?P<zone>[a-z]+(?: [a-z]+)?) time\b", _zone),
        (r"(?:every|each)\b", _every),
    ]  # fmt: skip
    return [(re.compile(pattern), apply) for pattern, apply in said]


def _or_every(
    apply: Callable[[Draft, re.Match[str]], None],
) -> Callable[[Draft, re.Match[str]], None]:
    """A clause that may begin with its own "every"."""

    def applied(draft: Draft, match: re.Match[str]) -> None:
        draft.repeat = draft.repeat or match[0].startswith(("every", "each"))
        apply(draft, match)

    return applied
