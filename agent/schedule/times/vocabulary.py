"""The English words for times, as patterns and numbers."""

import re

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
NUMBER = r"(?:\d+(?:\.\d+)?|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"
UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|[smhdw])"
_WORDS = "|".join(sorted(NUMBERS, key=len, reverse=True))
AMOUNT = rf"(?:\d+(?:\.\d+)?\s*|(?:{_WORDS})(?: of)?(?: an?)? ){UNIT}(?![a-z])"  # "20 min", "half an hour"
ORDINAL = r"(?:\d{1,2}(?:st|nd|rd|th)|" + "|".join(ORDINALS) + ")"


def number(text: str) -> float:
    return float(text) if text[0].isdigit() else NUMBERS[text]


def seconds(unit: str) -> int:
    """Seconds of a unit, singular, plural or short."""
    return UNITS.get(unit.rstrip("s")) or UNITS[_SHORT[unit.rstrip("s") or unit]]


def weekday(text: str) -> int:
    return _index(
        _DAYS, text.removesuffix("s") if not re.fullmatch("|".join(_DAYS), text) else text
    )


def month(text: str) -> int:
    return _index(_MONTHS, text.rstrip(".")) + 1


def ordinal(text: str) -> int:
    return ORDINALS.get(text) or int(re.sub(r"\D", "", text))


def _index(patterns: tuple[str, ...], text: str) -> int:
    return next(i for i, pattern in enumerate(patterns) if re.fullmatch(pattern, text))
