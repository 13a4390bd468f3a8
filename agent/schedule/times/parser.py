"""Parses English phrases clause by clause, in any order: every, on Monday, at 8, in 20 minutes, UTC.

Each clause fills a slot of the draft; what says a slot again contradicts it. Phrases in other languages are rewritten into English first (languages.py).
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from agent.language import ENGLISH, spoken, translated
from agent.schedule.due_times import CRON_FIELDS, cron_fields, next_times
from agent.schedule.times.draft import (
    CONTRADICTION,
    MIDNIGHT,
    Clock,
    Draft,
    NotUnderstood,
    TwoReadings,
)
from agent.schedule.times.rule import Cron, Rule

NUMBERS: dict[str, float] = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
        " fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
NUMBERS |= {
    "thirty": 30,
    "forty": 40,
    "fortyfive": 45,
    "forty-five": 45,
    "fifty": 50,
    "sixty": 60,
    "ninety": 90,
}
NUMBERS |= {"a": 1, "an": 1, "half": 0.5, "couple": 2, "dozen": 12}

ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}  # fmt: skip
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week"}  # fmt: skip

ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}

CLOCK_WORDS = {"noon": 12 * 60, "midday": 12 * 60, "12 noon": 12 * 60, "midnight": MIDNIGHT, "12 midnight": MIDNIGHT}  # fmt: skip
MACROS = {"hourly": "0 * * * *", "daily": "0 0 * * *", "midnight": "0 0 * * *", "weekly": "0 0 * * 0", "monthly": "0 0 1 * *", "yearly": "0 0 1 1 *", "annually": "0 0 1 1 *"}  # fmt: skip

_DAYS = ("mon(?:day)?", "tue(?:s(?:day)?)?", "wed(?:nesday)?", "thu(?:r(?:s(?:day)?)?)?", "fri(?:day)?", "sat(?:urday)?", "sun(?:day)?")  # fmt: skip
_MONTHS = ("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?", "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?")  # fmt: skip

# Abbreviations that mean one thing only; CST, IST, AST and BST do not.
ZONES = {"utc": "UTC", "gmt": "UTC", "z": "UTC", "cet": "Europe/Paris", "cest": "Europe/Paris", "est": "America/New_York", "edt": "America/New_York", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "mst": "America/Denver", "mdt": "America/Denver", "jst": "Asia/Tokyo"}  # fmt: skip
AMBIGUOUS_ZONES = {"cst", "ist", "ast", "bst"}

WEEKDAY = f"(?:{'|'.join(_DAYS)})s?"
MONTH = f"(?:{'|'.join(_MONTHS)})\\.?"
_WORDS = "|".join(sorted(NUMBERS, key=len, reverse=True))
NUMBER = rf"(?:\d+(?:\.\d+)?|{_WORDS})"
SPAN_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|[smhdw])"
UNIT = rf"(?:months?|years?|{SPAN_UNIT[3:]}"
# Units of real time.
HOURS = r"\d\s*(?:s|m|h|secs?|mins?|hrs?)\b|\d[smh](?=\d)|second|minute|hour|half|\."
AMOUNT = rf"(?:\d+(?:\.\d+)?\s*|(?:{_WORDS})(?: of)?(?: an?)? ){UNIT}(?![a-z])"  # "20 min", "half an hour"
ORDINAL = r"(?:\d{1,2}(?:st|nd|rd|th)|" + "|".join(ORDINALS) + ")"


def number_of(text: str) -> float:
    return float(text) if text[0].isdigit() else NUMBERS[text]


def unit_of(text: str) -> str:
    """Translate a unit (singular, plural or short) into a key of UNITS, or into month or year."""
    one = text.rstrip("s") or text
    return one if one in (*UNITS, "month", "year") else _SHORT[one]


def weekday_of(text: str) -> int:
    """Parse a weekday, singular or plural; Monday is 0."""
    return next(n for n, pattern in enumerate(_DAYS) if re.fullmatch(f"(?:{pattern})s?", text))


def month_of(text: str) -> int:
    """Parse a month; January is 1."""
    return next(
        n for n, pattern in enumerate(_MONTHS, 1) if re.fullmatch(pattern, text.rstrip("."))
    )


def ordinal_of(text: str) -> int:
    return ORDINALS.get(text) or int(re.sub(r"\D", "", text))


Clause = Callable[[Draft, re.Match[str]], None]
ASK = "I did not understand when that is. Say it like: in 20 minutes, tomorrow at 9, every weekday at 8."
TOO_FAR = "That date is out of range. When do you mean?"
TIDIED = {"everyday": "every day", "fortnightly": "every 2 weeks", "(?:a |an |one )?fortnight": "2 weeks", "a couple(?: of)?": "2", "three[- ]quarters of an hour": "45 minutes", "(?:a )?quarter of an hour": "15 minutes", r"(?<=(?:day|eek|nth|ear)s)' time": "", r"(?<=(?:day|eek|nth|ear))'s time": "", r"(in|every) (\d+) ?h ?([0-5]\d)": r"\1 \2 h \3 min"}  # fmt: skip
JOIN = r"(?:\s*(?:,|and|&|or|plus)\s*)+"
HOUR_WORD = "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
PARTS_OF_HOUR = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}  # minutes
MERIDIEM = r"(?:\s*[ap]\.?m\b\.?)"
WITHIN = r"(?:,? (?:in the (?:early |late )?(?:morning|afternoon|evening|night)|at (?:noon|night)))"
TIME = (
    rf"(?:(?:an? )?(?:{'|'.join(PARTS_OF_HOUR)}|\d{{1,2}}(?: minutes?)?) (?:past|to|after|before) (?:noon|midnight|\d{{1,2}}(?![\d:])|{HOUR_WORD}\b){MERIDIEM}?"
    rf"|12 (?:noon|midnight)|noon|midday|midnight"
    rf"|\d{{1,2}}[:.h]\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?!\d|:\d)(?:{MERIDIEM}|\s*uhr|\s*h\b|\s*hrs\b)?"
    rf"|(?:\d{{1,2}}|{HOUR_WORD})\s*(?:[ap]\.?m\b\.?|o'?clock{MERIDIEM}?|h\b|uhr)"
    rf"|(?:\d{{1,2}}|{HOUR_WORD})(?={WITHIN}))"
)
BARE_HOUR = (
    rf"(?:\d{{1,2}}(?!\d|[:.]\d)|{HOUR_WORD}\b(?!-))(?!\s*(?:st|nd|rd|th|%|{SPAN_UNIT[3:-1]})\b)"
)
LONGEST = 250  # characters of a time; the patterns' work grows with their square
INSTANT = r"\d{4}-?\d{2}-?\d{2}[t ]\d{2}:?\d{2}(?::?\d{2}(?:[.,]\d+)?)?(?: ?(?:z\b|[+-]\d{2}(?::?\d{2})?))?(?![\d:]|\s*[ap]\.?m)"


def parse(phrase: str, now: datetime) -> Rule:
    """The rule that a phrase means, in the language spoken, in English, or else in any other that is
    known. `now` is aware, in the chat's zone (a ZoneInfo).

    Raises NotUnderstood with the question to ask back.
    """
    if len(phrase) > LONGEST:
        raise NotUnderstood(translated(ASK))
    question = None
    for language in tried_languages():
        try:
            draft, rest = scan(phrase, now, language)
        except TwoReadings:
            raise
        except NotUnderstood as error:
            question = question or error
            continue
        if not rest:
            return rule_of(draft)
        if question is None:
            form = translated("I did not understand “{rest}”. When do you mean?")
            words = form.format(rest=rest if language == ENGLISH else phrase.strip())
            question = NotUnderstood(translated(ASK) if rest == tidy(phrase) else words)
    assert question
    if re.fullmatch(AMOUNT, tidy(phrase)):  # "20 minutes", as models write it
        return parse(f"in {phrase}", now)
    raise question


def tried_languages() -> Iterator[str]:
    """Yield languages with words for times: the spoken one, English, then others, for which languages.py is loaded."""
    if (own := spoken()) == ENGLISH:
        yield ENGLISH
    from agent.schedule.times.languages import RULES

    if own in RULES:
        yield own
    if own != ENGLISH:
        yield ENGLISH
    yield from (language for language in RULES if language != own)


def rule_of(draft: Draft) -> Rule:
    """The draft's rule, whose next times the calendar can hold; NotUnderstood asks back."""
    try:
        rule = draft.rule()
        due = next_times(rule, draft.now, 3)
    except OverflowError:
        raise NotUnderstood(translated(TOO_FAR)) from None
    if not due:
        raise NotUnderstood(translated("No such day exists. Which day do you mean?"))
    return rule


def tidy(phrase: str) -> str:
    phrase = re.sub(r"\s+", " ", phrase.strip().lower().replace("’", "'"))
    if not re.match(r"(?:[\d*/,-]+ ){2}", phrase):  # a "?" may be a field of cron's
        phrase = phrase.rstrip(".!?")
    for pattern, plain in TIDIED.items():
        phrase = re.sub(rf"\b{pattern}\b", plain, phrase)
    return phrase


def scan(
    phrase: str, now: datetime, language: str = ENGLISH, *, whole: bool = True
) -> tuple[Draft, str]:
    """Read clauses from the beginning of a phrase into a draft; return it with the rest of the phrase, in English. At a
    clause that contradicts an earlier one the rest begins; with `whole`, a phrase without a rest, that raises."""
    if language != ENGLISH:
        from agent.schedule.times.languages import in_english

        phrase = in_english(phrase, language)
    draft = Draft(now, str(now.tzinfo), asks_half=language == ENGLISH)
    rest = tidy(phrase)
    while clause := first_clause(rest):
        match, slot, apply = clause
        if not draft.said and match[0] in AMBIGUOUS_ZONES:  # "ist" is a word of German's
            break
        slot = "day" if apply is in_clause and not re.search(HOURS, match[0]) else slot
        if draft.contradicts(slot, whole):
            if whole:
                raise NotUnderstood(translated(CONTRADICTION))
            break
        try:
            apply(draft, match)
        except OverflowError:
            raise NotUnderstood(translated(TOO_FAR)) from None
        draft.said.append(slot)
        rest = rest[match.end() :].lstrip(" ,;:")
    return draft, rest


def first_clause(text: str) -> tuple[re.Match[str], str, Clause] | None:
    """The clause at the beginning of a text, up to the end of a word; its slot, and what it means."""
    for pattern, slot, apply in clauses():
        if (match := pattern.match(text)) and not re.match(r"\w", text[match.end() :]):
            return match, slot, apply
    return None


# -- what each clause means ----------------------------------------------------


def cron_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.cron = Cron(match["cron"], draft.zone)
    try:
        cron_fields(draft.cron)
    except ValueError as error:
        name = str(error)
        text = match["cron"].split()[CRON_FIELDS.index(name)]
        form = translated("“{text}” is not a valid {name} in a cron expression.")
        raise NotUnderstood(form.format(text=text, name=name)) from None


def macro_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.cron = Cron(MACROS[match[1]], draft.zone)


def instant_clause(draft: Draft, match: re.Match[str]) -> None:
    text = re.sub(r"\s(?=[+z-])", "", match["at"]).upper()
    try:
        draft.at = datetime.fromisoformat(text)
    except ValueError:
        raise NotUnderstood(translated("There is no such date. Which day do you mean?")) from None
    draft.said.append("day")


def in_clause(draft: Draft, match: re.Match[str]) -> None:
    """Parse "in ...", from today or from a day named before it: days and longer units keep the time of day, hours and
    minutes are elapsed time."""
    day, span = draft.day or draft.now.date(), timedelta()
    for count, unit in amounts(match[0]):
        if unit in ("month", "year"):
            months = count * (12 if unit == "year" else 1)
            if months != int(months):
                raise NotUnderstood(translated(ASK))
            day = later_month(day, int(months))
        elif unit in ("day", "week") and count == int(count):
            day += timedelta(days=int(count) * UNITS[unit] // 86400)
        else:
            span += timedelta(seconds=count * UNITS[unit])
    if day != draft.now.date():
        draft.day, draft.same_time = day, True
    if span or draft.day is None:
        draft.span = span


def later_month(day: date, months: int) -> date:
    """The same day of a later month, or that month's last."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if year > 9999:
        raise OverflowError
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def amounts(text: str) -> list[tuple[float, str]]:
    """The numbers with their units (keys of UNITS, month or year); "and a half" is of the last one."""
    form = re.compile(rf"(?P<count>{NUMBER})(?: of)?(?: an?)?\s*(?P<unit>{UNIT})")
    parts = [match for part in re.findall(AMOUNT, text) if (match := form.fullmatch(part))]
    found = [(number_of(part["count"]), unit_of(part["unit"])) for part in parts]
    if "and a half" in text:
        found[-1] = found[-1][0] + 0.5, found[-1][1]
    return found


def every_spans_clause(draft: Draft, match: re.Match[str]) -> None:
    """Parse an interval such as "every 1h30m" or "every hour and a half"."""
    draft.repeat = True
    found = amounts(match[0].replace(match["one"] or "-", f"one {match['one']}"))
    if {"month", "year"} & {unit for _, unit in found}:
        raise NotUnderstood(translated(ASK))
    draft.span = timedelta(seconds=sum(count * UNITS[unit] for count, unit in found))


def every_span_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.repeat = True
    count, unit = match["count"], match["unit"]
    many = 2 if count in ("other", "second") else number_of(count) if count else 1
    if match["half"]:
        draft.span = timedelta(seconds=UNITS[unit_of(unit)] / 2)
    elif unit.startswith("w") and many == int(many) > 0:
        draft.unit, draft.step = "week", int(many)
    elif unit.startswith("d") and many == 1:
        draft.unit = "day"
    else:
        draft.span = timedelta(seconds=many * UNITS[unit_of(unit)])


def every_long_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.repeat = True
    unit = match["unit"] or match["adverb"]
    draft.unit = ADVERBS.get(unit, unit)
    if draft.unit == "quarter":
        draft.unit, draft.months = "month", {1, 4, 7, 10}
    if draft.unit == "hour":
        draft.span = timedelta(hours=1)


def every_clause(draft: Draft, _match: re.Match[str]) -> None:
    draft.repeat = True


def every_other_clause(draft: Draft, _match: re.Match[str]) -> None:
    draft.repeat, draft.step = True, 2


def says_every(match: re.Match[str]) -> bool:
    return match[0].startswith(("every", "each"))


def workdays_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.repeat = draft.repeat or says_every(match) or match[0].endswith("s")
    draft.weekdays |= set(range(5)) if "end" not in match[0] else {5, 6}


def range_of_days_clause(draft: Draft, match: re.Match[str]) -> None:
    first, last = weekday_of(match["first"]), weekday_of(match["last"])
    draft.repeat = True
    draft.weekdays |= {(first + n) % 7 for n in range((last - first) % 7 + 1)}


def weekdays_clause(draft: Draft, match: re.Match[str]) -> None:
    named = re.findall(WEEKDAY, match["days"])
    draft.weekdays |= {weekday_of(day) for day in named}
    draft.repeat = draft.repeat or all(day.endswith("days") for day in named)
    draft.which = draft.which or (match["which"] or "").strip().replace("this", "")


def same_time_clause(draft: Draft, _match: re.Match[str]) -> None:
    draft.same_time = True


def either_day_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.same_time = match["first"] == "a_week"
    draft.day = draft.now.date() + timedelta(days=7 if draft.same_time else 1)
    draft.either = match["other"]


def next_week_clause(draft: Draft, _match: re.Match[str]) -> None:
    draft.which = "next week"


def nth_weekday_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.nth = ordinal_of(match["nth"])
    draft.weekdays.add(weekday_of(match["day"]))
    draft.repeat = draft.repeat or bool(match["each"])


def day_of_month_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.days |= {ordinal_of(day) for day in re.findall(ORDINAL, match["days"])}
    if draft.days - {-1, *range(1, 32)}:
        raise NotUnderstood(translated("A month has at most 31 days. Which day do you mean?"))
    draft.repeat = draft.repeat or bool(match["each"])


def named_date_clause(draft: Draft, match: re.Match[str]) -> None:
    day, month = int(re.sub(r"\D", "", match["day"])), month_of(match["month"])
    if draft.repeat and draft.unit in ("", "year") and not (draft.weekdays or draft.span or draft.part):  # fmt: skip
        draft.days, draft.months = {day}, {month}
        return
    draft.day = checked_date(match["year"], month, day, draft.now)


def iso_date_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.day = checked_date(match["year"], int(match["month"]), int(match["day"]), draft.now)


def checked_date(year: str | None, month: int, day: int, now: datetime) -> date:
    try:
        found = date(int(year or now.year), month, day)
    except ValueError:
        raise NotUnderstood(translated("There is no such date. Which day do you mean?")) from None
    return (
        found if year or found >= now.date() else checked_date(str(now.year + 1), month, day, now)
    )


def slashed_date_clause(draft: Draft, match: re.Match[str]) -> None:
    """Parse 24/12 or 12/24; ask if either number may be the month."""
    first, second = int(match["first"]), int(match["second"])
    readings = {(day, month) for day, month in ((first, second), (second, first)) if month <= 12}
    dates = sorted(checked_date(match["year"], month, day, draft.now) for day, month in readings)
    if not dates:
        raise NotUnderstood(translated("There is no such date. Which day do you mean?"))
    if len(dates) > 1:
        form = translated("{first}, or {second}?")
        raise TwoReadings(form.format(first=dates[0], second=dates[1]))
    draft.day = dates[0]


def relative_day_clause(draft: Draft, match: re.Match[str]) -> None:
    word = match[0]
    ahead = 2 if "after" in word else 1 if "tomorrow" in word else 0
    draft.day = draft.now.date() + timedelta(days=ahead)
    if word == "tonight":
        draft.part = "night"
        draft.said.append("part")


def daypart_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.part = match["part"].rstrip("s").replace("lunchtime", "noon").replace("nightly", "night")
    if match["this"] and not says_every(match):
        draft.day = draft.day or draft.now.date()
        draft.said.append("day")
    draft.repeat = draft.repeat or says_every(match) or match["part"].endswith(("s", "ly"))


def clock_clause(draft: Draft, match: re.Match[str]) -> None:
    found = list(re.finditer(rf"(?P<time>{TIME}|{BARE_HOUR})(?P<within>{WITHIN})?", match["times"]))
    for each in found:
        clock = clock_of(each["time"])
        draft.midnight |= each["time"].endswith("midnight") and clock.minute == MIDNIGHT
        if each["within"]:
            draft.of_clock = True
            clock = clock.within(each["within"].split()[-1])
        elif re.fullmatch(rf"{BARE_HOUR}|.* (?:past|to) .*", each["time"]):
            draft.asks_half = True
        draft.clocks.append(clock)
    if len(found) == 1 and (seconds := re.match(r"\d{1,2}:\d{2}:(\d{2})", found[0]["time"])):
        draft.second = min(int(seconds[1]), 59)


def clock_of(text: str) -> Clock:
    """Parse a time of day; an hour of 1 to 12 without "0", am or pm may mean morning or evening. Raises NotUnderstood."""
    if text in CLOCK_WORDS:
        return Clock(CLOCK_WORDS[text])
    if found := re.match(r"(?:an? )?(\w+)(?: minutes?)? (past|to|after|before) (.+)", text):
        some = PARTS_OF_HOUR.get(found[1]) or int(number_of(found[1]))
        if some % 5 and "minute" not in text:  # "9 to 10"
            raise NotUnderstood(translated("At what time of day?"))
        clock = clock_of(found[3])
        minute = clock.minute + (some if found[2] in ("past", "after") else -some)
        if clock.of_twelve and minute < 60:  # "a quarter to one"
            minute += 720
        return Clock(minute % MIDNIGHT, clock.of_twelve)
    digits = re.sub(HOUR_WORD, lambda word: f"{number_of(word[0]):.0f}", text)
    hour, minute = [*map(int, re.findall(r"\d+", digits)), 0][:2]
    meridiem = re.search(r"[ap]\.?m", text)
    if hour * 60 + minute > MIDNIGHT or minute > 59 or (meridiem and not 1 <= hour <= 12):
        form = translated("{text} is not a time of day. At what time?")
        raise NotUnderstood(form.format(text=text))
    if meridiem:
        return Clock((hour % 12 + (12 if meridiem[0][0] == "p" else 0)) * 60 + minute)
    return Clock(hour * 60 + minute, 1 <= hour <= 12 and digits[0] != "0")


def zone_clause(draft: Draft, match: re.Match[str]) -> None:
    name = match["zone"].replace(" ", "_")
    if name in AMBIGUOUS_ZONES:
        form = translated("{name} can mean several zones. Which city's time do you mean?")
        raise NotUnderstood(form.format(name=name.upper()))
    draft.zone = ZONES.get(name) or zone_of_city(name)
    draft.now = draft.now.astimezone(ZoneInfo(draft.zone))


def zone_of_city(name: str) -> str:
    found = [
        zone
        for zone in available_timezones()
        if name in (zone.lower(), zone.lower().rpartition("/")[2])
    ]
    if not found:
        form = translated("I do not know the time zone “{name}”. Which city's time do you mean?")
        raise NotUnderstood(form.format(name=name.replace("_", " ")))
    return min(found, key=len)


@cache
def clauses() -> list[tuple[re.Pattern[str], str, Clause]]:
    """The patterns of clauses, in the order of trial, each with the slot that it fills and what it adds to a draft."""
    on = r"(?:on |from |starting )?(?:the )?"
    each = (
        r"(?P<each>(?: days?)? of (?:the|every|each|a) months?| every month| each month| monthly)?"
    )
    more = rf"(?:(?:,? and |,? ?){AMOUNT})"
    span = rf"{AMOUNT}{more}*(?: and a half)?"
    times = rf"(?P<times>(?:{TIME}|{BARE_HOUR}){WITHIN}?(?:{JOIN}(?:at )?(?:{TIME}|{BARE_HOUR}){WITHIN}?)*)"
    found: list[tuple[str, str, Clause]] = [
        (r"(?:cron:? )?(?P<cron>(?:[\d*/,-]+ ){2}[\d*/,a-z-]+ [\d*/,a-z-]+ [\d*/,a-z-]+)(?!\S)", "cron", cron_clause),
        (rf"@({'|'.join(MACROS)})\b", "cron", macro_clause),
        (rf"(?:on |at )?(?P<at>{INSTANT})", "time", instant_clause),
        (rf"(?:in|after) (?:about )?{span}(?: from now)?", "span", in_clause),
        (rf"{span} from now", "span", in_clause),
        (rf"(?:every|each) (?:other|second)(?= {WEEKDAY})", "every", every_other_clause),
        (rf"@?(?:every|each) (?:{AMOUNT}{more}+(?: and a half)?|(?P<one>hour|day) and a half)", "every", every_spans_clause),
        (rf"@?(?:every|each) (?P<half>half (?:an? )?)?(?:(?P<count>{NUMBER}|other|second)\s*)?(?P<unit>{SPAN_UNIT})\b(?! of)", "every", every_span_clause),
        (r"(?:(?:every|each|once an?|once per) (?P<unit>day|week|month|year|quarter)|(?P<adverb>hourly|daily|weekly|monthly|yearly|annually))\b", "every", every_long_clause),
        (rf"{on}(?P<nth>first|second|third|fourth|last|[1-4](?:st|nd|rd|th)) (?P<day>{WEEKDAY})\b(?P<each> (?:of|in) (?:the|every|each|a) month| every month| each month| monthly)?", "day", nth_weekday_clause),
        (rf"{on}(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)\.?(?: of)? (?P<month>{MONTH})\b(?:,? (?P<year>\d{{4}}))?", "day", named_date_clause),
        (rf"{on}(?P<month>{MONTH}) (?:the )?(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)\b(?!:)(?:,? (?P<year>\d{{4}})(?!:))?", "day", named_date_clause),
        (r"(?:on )?(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?:t(?=\d))?", "day", iso_date_clause),
        (r"(?:on )?(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})?", "day", iso_date_clause),
        (r"(?:on )?(?P<first>\d{1,2})/(?P<second>\d{1,2})(?:/(?P<year>\d{4}))?", "day", slashed_date_clause),
        (r"(?:every |each |on )?(?:weekdays?|work(?:ing )?days?|business days?|weekends?)\b", "day", workdays_clause),
        (rf"(?:every |each |on )?(?P<first>{WEEKDAY})\s*(?:-|–|to|through|till|until)\s*(?P<last>{WEEKDAY})\b", "day", range_of_days_clause),
        (rf"(?:on )?(?P<which>next |this |coming )?(?P<days>{WEEKDAY}(?:{JOIN}(?:on |every )?{WEEKDAY})*)\b", "day", weekdays_clause),
        (r"(?:in |of |on )?next week\b", "", next_week_clause),
        (rf"(?!(?:{'|'.join(ORDINALS)})\b(?! (?:day )?of | every | each | monthly)){on}(?P<days>(?:{ORDINAL})(?:{JOIN}(?:the )?(?:{ORDINAL}))*)(?! hour| minute)\b{each}", "day", day_of_month_clause),
        (r"(?:the )?day after tomorrow|today|tomorrow|tonight", "day", relative_day_clause),
        ("(?P<first>tomorrow|a_week)_or_(?P<other>every_other_day|8_days)", "day", either_day_clause),
        (r"(?P<this>this |every |each )?(?:in the |at |the )?(?P<part>mornings?|afternoons?|evenings?|nights?|nightly|lunchtime)\b", "part", daypart_clause),
        (rf"(?:at |around |by |@ ?)(?:about |around )?{times}", "time", clock_clause),
        (rf"(?P<times>{TIME}{WITHIN}?(?:{JOIN}{TIME}{WITHIN}?)*)", "time", clock_clause),
        (r"(?:in )?(?P<zone>utc|gmt|cet|cest|est|edt|pst|pdt|mst|mdt|jst|cst|ist|ast|bst|[a-z]+/[a-z_/]+)\b(?: time)?", "zone", zone_clause),
        (r"(?:at )?(?:the |about )?(?:same|this) time\b", "time", same_time_clause),
        (r"(?:in |, )?(?P<zone>[a-z]+(?: [a-z]+)?) time\b", "zone", zone_clause),
        (r"(?:every|each)\b", "", every_clause),
    ]  # fmt: skip
    return [(re.compile(pattern), slot, apply) for pattern, slot, apply in found]
