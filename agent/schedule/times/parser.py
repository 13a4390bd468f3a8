"""Parses English phrases clause by clause, in any order: every, on Monday, at 8, in 20 minutes, UTC.

Phrases in other languages are rewritten into English first (languages.py).
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from agent.language import ENGLISH, spoken, translated
from agent.schedule.times.draft import Draft, NotUnderstood
from agent.schedule.times.rule import Cron, Rule
from agent.schedule.triggers import CRON_FIELDS, cron_fields, next_times

NUMBERS: dict[str, float] = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
        " fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
NUMBERS |= {"thirty": 30, "forty": 40, "fortyfive": 45, "sixty": 60, "ninety": 90}
NUMBERS |= {"a": 1, "an": 1, "half": 0.5, "couple": 2, "dozen": 12}

ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}  # fmt: skip
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week"}  # fmt: skip

ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}

DAYPARTS = {"morning": 8 * 60, "noon": 12 * 60, "midday": 12 * 60, "lunchtime": 12 * 60, "afternoon": 15 * 60, "evening": 18 * 60, "night": 21 * 60, "midnight": 0}  # fmt: skip

_DAYS = ("mon(?:day)?", "tue(?:s(?:day)?)?", "wed(?:nesday)?", "thu(?:r(?:s(?:day)?)?)?", "fri(?:day)?", "sat(?:urday)?", "sun(?:day)?")  # fmt: skip
_MONTHS = ("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?", "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?")  # fmt: skip

# Abbreviations that mean one thing only; CST, IST, AST and BST do not.
ZONES = {"utc": "UTC", "gmt": "UTC", "z": "UTC", "cet": "Europe/Paris", "cest": "Europe/Paris", "est": "America/New_York", "edt": "America/New_York", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "mst": "America/Denver", "mdt": "America/Denver", "jst": "Asia/Tokyo"}  # fmt: skip
AMBIGUOUS_ZONES = {"cst", "ist", "ast", "bst"}

WEEKDAY = f"(?:{'|'.join(_DAYS)})s?"
MONTH = f"(?:{'|'.join(_MONTHS)})\\.?"
_WORDS = "|".join(sorted(NUMBERS, key=len, reverse=True))
NUMBER = rf"(?:\d+(?:\.\d+)?|{_WORDS})"
UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|[smhdw])"
AMOUNT = rf"(?:\d+(?:\.\d+)?\s*|(?:{_WORDS})(?: of)?(?: an?)? ){UNIT}(?![a-z])"  # "20 min", "half an hour"
ORDINAL = r"(?:\d{1,2}(?:st|nd|rd|th)|" + "|".join(ORDINALS) + ")"


def number_of(text: str) -> float:
    return float(text) if text[0].isdigit() else NUMBERS[text]


def seconds_of(unit: str) -> int:
    """Seconds of a unit, singular, plural or short."""
    return UNITS.get(unit.rstrip("s")) or UNITS[_SHORT[unit.rstrip("s") or unit]]


def weekday_of(text: str) -> int:
    """0 for Monday; singular or plural."""
    return next(n for n, pattern in enumerate(_DAYS) if re.fullmatch(f"(?:{pattern})s?", text))


def month_of(text: str) -> int:
    """1 for January."""
    return next(
        n for n, pattern in enumerate(_MONTHS, 1) if re.fullmatch(pattern, text.rstrip("."))
    )


def ordinal_of(text: str) -> int:
    return ORDINALS.get(text) or int(re.sub(r"\D", "", text))


Clause = Callable[[Draft, re.Match[str]], None]
ASK = "I did not understand when that is. Say it like: in 20 minutes, tomorrow at 9, every weekday at 8."
TOO_FAR = "That date is out of range. When do you mean?"
JOIN = r"(?:\s*(?:,|and|&|or|plus)\s*)+"
HOUR_WORD = "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
PARTS_OF_HOUR = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}  # minutes
TIME = (
    rf"(?:(?:an? )?(?:{'|'.join(PARTS_OF_HOUR)}) (?:past|to) (?:\d{{1,2}}(?!\d)|{HOUR_WORD}\b)|\d{{1,2}}[:.h]\d{{2}}(?:\s*[ap]\.?m\.?)?"
    rf"|(?:\d{{1,2}}|{HOUR_WORD})\s*(?:[ap]\.?m\b\.?|o'?clock|h\b|uhr)|noon|midday|midnight)"
)
BARE_HOUR = rf"(?:\d{{1,2}}(?!\d|[:.]\d)|{HOUR_WORD}\b(?!-))(?!\s*(?:st|nd|rd|th|%|{UNIT[3:-1]})\b)"


def parse(phrase: str, now: datetime) -> Rule:
    """The rule that a phrase means, in the language spoken, in English, or else in any other that is
    known. `now` is aware, in the chat's zone (a ZoneInfo).

    Raises NotUnderstood with the question to ask back.
    """
    question = None
    for language in tried_languages():
        try:
            draft, rest = scan(phrase, now, language)
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
    raise question


def tried_languages() -> Iterator[str]:
    """Those with words for times: the one spoken, English, then the others, for which languages.py is loaded."""
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


def parse_with_task(text: str, now: datetime) -> tuple[Rule, str]:
    """The rule at the beginning or end of a text, and the rest, which is the task."""
    question = None
    for language in tried_languages():
        try:
            if language == ENGLISH and (found := english_with_task(text, now)):
                return found
            if found := split_at_task(text, language, now):
                return found
        except NotUnderstood as error:
            question = question or error
    raise question or NotUnderstood(translated(ASK))


def english_with_task(text: str, now: datetime) -> tuple[Rule, str] | None:
    draft, rest = scan(text, now)
    if rest and rest != tidy(text):
        return rule_of(draft), original_letters(text, rest)
    if not rest:
        raise NotUnderstood(translated("What should I do then?"))
    for word in list(re.finditer(r"\S+", text))[1:]:
        start = word.start()
        draft, rest = scan(text[start:], now)
        if not rest:
            return rule_of(draft), text[:start].strip(" ,;:")
    return None


def split_at_task(text: str, language: str, now: datetime) -> tuple[Rule, str] | None:
    """The rule and the task of a text in any language, by trying each place where the time may end or begin.
    "Remind me" may stand before the time or before the task. None where no time is found."""
    from agent.schedule.times.languages import REMIND

    remind_me = re.compile(f"^(?:{REMIND[language]})", re.IGNORECASE)
    text = text.strip()
    rest = remind_me.sub("", text)
    words = re.findall(r"[\u4e00-\u9fff]\s*|[^\s\u4e00-\u9fff]+\s*", rest)
    sides = [("".join(words[:cut]), "".join(words[cut:])) for cut in range(len(words), 0, -1)]
    for when, what in [*sides, *((what, when) for when, what in reversed(sides) if what)]:
        when, what = when.strip(" ,;:"), what.strip(" ,;:")
        draft, left = scan(when, now, language)
        if left or not when:
            continue
        task = remind_me.sub("", what).strip(" ,;:")
        if not task:
            raise NotUnderstood(translated("What should I do then?"))
        reminded = task != what or rest != text
        return rule_of(draft), f"remind me {task}" if reminded else task
    return None


def original_letters(text: str, rest: str) -> str:
    """The rest in its own letters: scanning works on tidied, lower-case text."""
    tail = re.split(r"\s+", text.strip())[-len(rest.split()) :]
    return re.sub(r"^(?:to|please|:|,|-)\s+", "", " ".join(tail).lstrip(" ,;:-"))


def tidy(phrase: str) -> str:
    return re.sub(r"\s+", " ", phrase.strip().lower().rstrip(".!?"))


def scan(phrase: str, now: datetime, language: str = ENGLISH) -> tuple[Draft, str]:
    """The draft of as many clauses as stand at the beginning, and the rest in English."""
    if language != ENGLISH:
        from agent.schedule.times.languages import in_english

        phrase = in_english(phrase, language)
    draft = Draft(now, str(now.tzinfo))
    rest = tidy(phrase)
    while rest:
        for pattern, apply in clauses():
            if match := pattern.match(rest):
                try:
                    apply(draft, match)
                except OverflowError:
                    raise NotUnderstood(translated(TOO_FAR)) from None
                rest = rest[match.end() :].lstrip(" ,;:")
                break
        else:
            break
    return draft, rest


# -- what each clause means ----------------------------------------------------


def cron_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.cron = Cron(match[0], draft.zone)
    try:
        cron_fields(draft.cron)
    except ValueError as error:
        name = str(error)
        text = match[0].split()[CRON_FIELDS.index(name)]
        form = translated("“{text}” is not a valid {name} in a cron expression.")
        raise NotUnderstood(form.format(text=text, name=name)) from None


def in_clause(draft: Draft, match: re.Match[str]) -> None:
    parts = [amount_seconds(found) for found in re.findall(AMOUNT, match[0])]
    total = sum(count * unit for count, unit in parts)
    total += 0.5 * parts[-1][1] if "and a half" in match[0] else 0
    draft.span = (draft.span or timedelta()) + timedelta(seconds=total)


def amount_seconds(text: str) -> tuple[float, int]:
    """A number and the seconds of its unit."""
    match = re.match(rf"(?P<count>{NUMBER})(?: of)?(?: an?)?\s*(?P<unit>{UNIT})$", text)
    assert match
    return number_of(match["count"]), seconds_of(match["unit"])


def every_span_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.repeat = True
    count, unit = match["count"], match["unit"]
    many = 2 if count in ("other", "second") else int(number_of(count)) if count else 1
    if match["half"]:
        draft.span = timedelta(seconds=seconds_of(unit) / 2)
    elif unit.startswith("w"):
        draft.unit, draft.step = "week", many
    elif unit.startswith("d") and many == 1:
        draft.unit = "day"
    else:
        draft.span = timedelta(seconds=many * seconds_of(unit))


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
    draft.next_week = draft.next_week or (match["which"] or "").strip() == "next"


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
    if draft.repeat:
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


def relative_day_clause(draft: Draft, match: re.Match[str]) -> None:
    word = match[0]
    ahead = 2 if "after" in word else 1 if "tomorrow" in word else 0
    draft.day = draft.now.date() + timedelta(days=ahead)
    if word == "tonight":
        draft.daypart = DAYPARTS["night"]


def daypart_clause(draft: Draft, match: re.Match[str]) -> None:
    draft.daypart = DAYPARTS[match["part"].rstrip("s")]
    if match["this"] and "every" not in match["this"]:
        draft.day = draft.day or draft.now.date()
    draft.repeat = draft.repeat or says_every(match) or match["part"].endswith("s")


def clock_clause(draft: Draft, match: re.Match[str]) -> None:
    found = re.findall(rf"{TIME}|{BARE_HOUR}", match["times"])
    draft.hours12 = any(re.fullmatch(rf"\d{{1,2}}|{HOUR_WORD}", each) for each in found)
    draft.times += [minute_of_day(each) for each in found]


def minute_of_day(text: str) -> int:
    """Minutes after midnight of one time of day."""
    if text in DAYPARTS:
        return DAYPARTS[text]
    if found := re.match(r"(?:an? )?(\w+) (past|to) (\w+)", text):
        hour, minute = int(number_of(found[3])), PARTS_OF_HOUR[found[1]]
        minute = -minute if found[2] == "to" else minute
    else:
        digits = re.sub(HOUR_WORD, lambda word: f"{number_of(word[0]):.0f}", text)
        hour, minute = [*map(int, re.findall(r"\d+", digits)), 0][:2]
    if meridiem := re.search(r"[ap]\.?m", text):
        if not 1 <= hour <= 12:
            raise NotUnderstood(
                translated("{text} is not a time of day. At what time?").format(text=text)
            )
        hour = hour % 12 + (12 if meridiem[0][0] == "p" else 0)
    if hour > 23 or minute > 59:
        raise NotUnderstood(
            translated("{text} is not a time of day. At what time?").format(text=text)
        )
    return (hour * 60 + minute) % 1440


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
def clauses() -> list[tuple[re.Pattern[str], Clause]]:
    """The clauses that are tried in this order, each with what it says of the draft."""
    on = r"(?:on |from |starting )?(?:the )?"
    each = r"(?P<each>(?: day)? of (?:the|every|each|a) months?| every month| each month| monthly)?"
    span = rf"{AMOUNT}(?:(?:,? and |,? ?){AMOUNT})*(?: and a half)?"
    times = rf"(?P<times>(?:{TIME}|{BARE_HOUR})(?:{JOIN}(?:at )?(?:{TIME}|{BARE_HOUR}))*)"
    found = [
        (r"(?:[\d*/,-]+ ){2}[\d*/,a-z-]+ [\d*/,a-z-]+ [\d*/,a-z-]+(?!\S)", cron_clause),
        (rf"(?:in|after) (?:about )?{span}(?: from now)?", in_clause),
        (rf"{span} from now", in_clause),
        (rf"(?:every|each) (?:other|second)(?= {WEEKDAY})", every_other_clause),
        (rf"(?:every|each) (?P<half>half (?:an? )?)?(?:(?P<count>{NUMBER}|other|second)\s*)?(?P<unit>{UNIT})\b(?! of)", every_span_clause),
        (r"(?:(?:every|each|once an?|once per) (?P<unit>month|year|quarter)|(?P<adverb>hourly|daily|weekly|monthly|yearly|annually))\b", every_long_clause),
        (rf"{on}(?P<nth>first|second|third|fourth|last|[1-4](?:st|nd|rd|th)) (?P<day>{WEEKDAY})\b(?P<each> (?:of|in) (?:the|every|each|a) month| every month| each month| monthly)?", nth_weekday_clause),
        (rf"{on}(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)\.?(?: of)? (?P<month>{MONTH})\b(?:,? (?P<year>\d{{4}}))?", named_date_clause),
        (rf"{on}(?P<month>{MONTH}) (?:the )?(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)\b(?!:)(?:,? (?P<year>\d{{4}}))?", named_date_clause),
        (r"(?:on )?(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:t(?=\d))?", iso_date_clause),
        (r"(?:on )?(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})?", iso_date_clause),
        (r"(?:every |each |on )?(?:weekdays?|work(?:ing )?days?|business days?|weekends?)\b", workdays_clause),
        (rf"(?:every |each |on )?(?P<first>{WEEKDAY})\s*(?:-|–|to|through|till|until)\s*(?P<last>{WEEKDAY})\b", range_of_days_clause),
        (rf"(?:on )?(?P<which>next |this |coming )?(?P<days>{WEEKDAY}(?:{JOIN}(?:on )?{WEEKDAY})*)\b", weekdays_clause),
        (rf"{on}(?P<days>(?:{ORDINAL})(?:{JOIN}(?:the )?(?:{ORDINAL}))*)(?! hour| minute)\b{each}", day_of_month_clause),
        (r"(?:the )?day after tomorrow|today|tomorrow|tonight", relative_day_clause),
        (r"(?P<this>this |every |each )?(?:in the |at |the )?(?P<part>mornings?|afternoons?|evenings?|nights?|lunchtime)\b", daypart_clause),
        (rf"(?:at |around |by |@ ?){times}", clock_clause),
        (rf"(?P<times>{TIME}(?:{JOIN}{TIME})*)", clock_clause),
        (r"(?:in )?(?P<zone>utc|gmt|cet|cest|est|edt|pst|pdt|mst|mdt|jst|cst|ist|ast|bst|[a-z]+/[a-z_/]+)\b(?: time)?", zone_clause),
        (r"(?:in |, )?(?P<zone>[a-z]+(?: [a-z]+)?) time\b", zone_clause),
        (r"(?:every|each)\b", every_clause),
    ]  # fmt: skip
    return [(re.compile(pattern), apply) for pattern, apply in found]
