"""Rewrites times in other languages into the English that the parser reads.

in_english("завтра в 9", "ru") -> "tomorrow at 9"

Each language is a list of regular expressions with their English, applied in order: longer phrases come first.
What no rule matches stays as it is. Loaded only for phrases that are not English.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from agent.schedule.times.rule import MONTHS, WEEKDAYS

Replacement = str | Callable[[re.Match[str]], str]
Rewriting = tuple[str, Replacement]

ORDINALS = ("first", "second", "third", "fourth", "last")
UNITS = ("seconds", "minutes", "hours", "days", "weeks", "month", "year")
MORNING, NOON, AFTERNOON, EVENING, NIGHT = " in the morning", " at noon", " in the afternoon", " in the evening", " at night"  # fmt: skip
EVERY_WEEKDAY = tuple(f"every {day}" for day in WEEKDAYS)
HALF_PAST, QUARTER_PAST, QUARTER_TO = (rf"at {part} \1" for part in ("half past", "quarter past", "quarter to"))  # fmt: skip
SLASHED = r"(\d{1,2})/(\d{1,2})(?:/(\d{4}))?\b"  # the day first, unlike in English
ONE_UNIT = r"\bevery (second|hour|day|week|minute)s\b", r"every \1"

# "Remind me", with the preposition or conjunction before the task.
REMIND = {
    "de": r"(?:bitte )?erinner(?:e|n sie)? mich(?: bitte)?(?: daran,?| an\b)?",
    "es": r"(?:por favor,? )?recu[eé]rda(?:me|melo)(?: que| de)?",
    "fr": r"(?:s'il (?:te|vous) pla[iî]t,? )?rappelle(?:z)?[- ]moi(?: de\b| d'| que)?",
    "ru": r"(?:пожалуйста,? )?напомни(?:те)?(?: мне)?(?: пожалуйста)?(?:,? что| о| об| про)?",
    "zh": r"(?:请)?(?:记得)?提醒(?:我|一下我?)",
}


def in_english(phrase: str, language: str) -> str:
    """The phrase in lower case, with what it says of times in English."""
    text = re.sub(r"\b(?:ist|est|cet(?! apr))\b", "is", phrase)  # no zones, which have capitals
    text = " ".join(text.lower().replace("’", "'").split())
    for pattern, replacement in rules(language):
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


@cache
def rules(language: str) -> list[tuple[re.Pattern[str], Replacement]]:
    return [(re.compile(pattern), to) for pattern, to in RULES[language]()]


def named(names: str, english: tuple[str, ...], after: str = r"\b") -> Iterator[Rewriting]:
    """One rewriting of all names (patterns, separated by spaces), which are in the order of the English ones."""
    meant = {f"n{n}": word.lower() for n, word in enumerate(english)}
    either = "|".join(f"(?P<{n}>{name})" for n, name in zip(meant, names.split(), strict=True))
    yield rf"\b(?:{either}){after}", lambda found: meant[found.lastgroup or ""]


def numbers(words: str) -> Iterator[Rewriting]:
    """The rewriting of the words for 1 to 20 and 30, given in that order, to digits."""
    longest_first = " ".join(reversed(words.split()))
    return named(longest_first, tuple(map(str, [30, *range(20, 0, -1)])))


def at_time(match: re.Match[str]) -> str:
    return f"at {match[1]}:{int(match[2] or 0):02}"


def at_within(part: str) -> Replacement:
    return lambda match: f" {at_time(match)}{part} "


EIGHT_DAYS = "a_week_or_8_days"  # in words, 8 days are a week to many


def german() -> Iterator[Rewriting]:
    yield r"\b(?:heute )?in acht tagen\b", EIGHT_DAYS
    yield from numbers(
        "ein[sermn]* zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig"
    )
    yield r"\b(?:1 )?halbe[nr]? stunde\b", "half an hour"
    yield r"\b(?:1 )?viertelstunde\b", "15 minutes"
    yield r"\b(?:1 )?dreiviertelstunde\b", "45 minutes"
    yield r"\b(?:anderthalb|eineinhalb|1einhalb) stunden\b", "90 minutes"
    yield r"\b(\d+)einhalb(?= stunden| tage)", r"\1.5"
    yield r"(?<=\d),(?=\d+ (?:stunden|minuten))", "."
    yield (
        r"\b(zwei|drei|vier|fünf)einhalb(?= stunden)",
        lambda m: f"{2 + 'zwei drei vier fünf'.split().index(m[1])}.5",
    )
    yield r"\b(\d{1,2})[:.](\d{2}) ?uhr\b", r"\1:\2"
    yield r"\b(?:um |gegen )?halb (\d{1,2})\b(?: uhr)?", lambda half: f"at half past {(int(half[1]) - 1) % 24 or 12}"  # fmt: skip
    yield r"\b(?:um |gegen )?viertel nach (\d{1,2})\b(?: uhr)?", QUARTER_PAST
    yield r"\b(?:um |gegen )?(?:viertel vor|dreiviertel) (\d{1,2})\b(?: uhr)?", QUARTER_TO
    yield r"\b(?:um |gegen )?(\d{1,2}) (?:minuten )?nach (\d{1,2})\b(?: uhr)?", r"at \1 past \2"
    yield r"\b(?:um |gegen )?(\d{1,2}) (?:minuten )?vor (\d{1,2})\b(?: uhr)?", r"at \1 to \2"
    yield r"\b(?:um |gegen |ab )?(\d{1,2}) ?uhr\b(?: (\d{2})\b)?", at_time
    yield r"\bmittags um (\d{1,2}(?::\d{2})?)", rf"at \1{NOON}"
    for word, part in (
        ("morgens|früh|vormittags|in der früh|am morgen|am vormittag", MORNING),
        ("mittags", NOON),
        ("nachmittags|am nachmittag", AFTERNOON),
        ("abends|am abend", EVENING),
        ("nachts|in der nacht", NIGHT),
    ):
        yield rf"(?<=\d) (?:{word})\b", part
    day = r"\w+tag|mittwoch|sonnabend"
    parts = "vormittag|mittag|nachmittag|abend|nacht"
    yield rf"\b({day})(?=(?:morgen|früh|{parts})s?\b)", r"\1 "
    when = rf"heute|morgen|übermorgen|tagen|\w+_days|wochen?|\d+\.|am (?:{day})"
    yield rf"\b({when}) ({parts})s\b", r"\1 \2"
    yield rf"\b({day}|heute|übermorgen) (?:morgen|früh|vormittag)\b", r"\1 morning"
    yield r"\bübermorgen\b", "day after tomorrow"
    yield r"\bmorgen (?:früh|vormittag)\b", "tomorrow morning"
    yield r"\b(?:heute|diese|(?:in der )?kommenden?) nacht\b", "tonight"
    yield r"\b(?:jede nacht|nachts)\b", "every night"
    yield r"\b(?:in der )?nacht\b", "night"
    yield r"\b(?:in der )?nächste[nr]? woche\b", "next week"
    yield r"\bheute\b", "today"
    yield r"\bjeden morgen\b|\bmorgens\b", "every morning"
    yield r"\b(?:jeden nachmittag|nachmittags)\b", "every afternoon"
    yield r"\b(?:jeden abend|abends)\b", "every evening"
    yield r"\bam (?:morgen|vormittag)\b", "in the morning"
    yield r"\bmorgen\b", "tomorrow"
    yield r"\b(?:am )?nachmittag\b", "afternoon"
    yield r"\b(?:am )?abend\b", "evening"
    yield r"\b(?:am |um )?mittags?\b", "noon"
    yield r"\b(?:um )?mitternachts?\b", "midnight"
    yield (
        r"\b(?:an |jeden )?(?:werktags|werktagen|werktag|wochentags|arbeitstagen|arbeitstag)\b",
        "every weekday",
    )
    yield r"\b(?:an wochenenden|jedes wochenende|wochenends)\b", "every weekend"
    abbreviations = dict(zip("mo di mi do fr sa so".split(), WEEKDAYS, strict=True))
    short = rf"({'|'.join(abbreviations)})\.?"
    yield (
        rf"\b{short} ?(?:-|–|bis) ?{short}(?!\w)",
        lambda m: f"{abbreviations[m[1]]} to {abbreviations[m[2]]}".lower(),
    )
    yield from named(
        "täglich stündlich wöchentlich monatlich jährlich",
        ("every day", "every hour", "weekly", "monthly", "yearly"),
    )
    in_month = r"(?:\w+tag|mittwoch) (?:im|des|eines) "
    yield rf"\bjede[nrs]? (?:zweite[nrs]?\b|2\.)(?! {in_month})", "every other"
    yield rf"\bjede[nrs]? 2\. (?={in_month})", "on the second "
    yield (
        r"\bjede[nrs]? (?=(?:erste|zweite|dritte|vierte|letzte)[nr]? (?:\w+tag|mittwoch))",
        "on the ",
    )
    yield r"\b(?:im|des|jeden|eines jeden|jedes) monats?\b(?! am)", "of the month"
    yield from named(
        "ersten?[nr]? zweiten?[nr]? dritten?[nr]? vierten?[nr]? letzten?[nr]?", ORDINALS
    )
    yield r"\b(?:jede[nrs]?|alle)\b", "every"
    days = "montag dienstag mittwoch donnerstag freitag (?:samstag|sonnabend) sonntag"
    yield from named(days, EVERY_WEEKDAY, r"s\b")
    yield from named(days, WEEKDAYS)
    yield r"\bvon (\w+day) bis (\w+day)\b", r"\1 to \2"
    yield from named(
        "(?:januar|jänner) februar märz april mai juni juli august september oktober november dezember",
        MONTHS,
    )
    yield r"(?<![\d.])(\d{1,2})\.(?=\s|,|$)", r"\1th"
    yield from named(
        "sekunden? minuten? stunden? tag(?:en|e)? wochen? monat(?:en|e)? jahr(?:en|e)?", UNITS
    )
    yield r"\bnächste[nrs]?\b", "next"
    yield r"\bkommende[nrs]?\b", "coming"
    yield r"\bevery 1\b", "every"
    yield r"\bevery days\b", "every day"
    yield r"\bund\b", "and"
    yield r"\bbis\b", "to"
    yield r"\b(?:um|gegen|ab)\b", "at"
    yield r"(?<!\d )(?<!\d)\bam (?=\d+th\b)", "on the "
    yield r"(?<!\d )(?<!\d)\bam\b", "on"


def french() -> Iterator[Rewriting]:
    yield r"\bquinze jours\b", "2 semaines"
    yield r"\b(?:dans|d'ici) huit jours\b", EIGHT_DAYS
    yield r"\btrois quarts d'heure\b", "45 minutes"
    yield from numbers(
        "une? deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf vingt trente"
    )
    yield r"\b(?:le )?" + SLASHED, r"\1.\2.\3"
    yield r"\b1 demi[- ]heure\b|\bdemi[- ]heure\b", "half an hour"
    yield r"\b1 quart d'heure\b", "15 minutes"
    yield r"\b1 heure et demie\b", "90 minutes"
    yield r"\b(?:dans|d'ici) (\d+) ?h(?:eures?)? et demie\b", r"in \1.5 hours"
    yield r"\b(?:dans|d'ici) (\d+) ?h(?:eures?)? ?(\d{2})\b", r"in \1 hours and \2 minutes"
    yield r"\b(?:dans|d'ici) (\d+) ?h(?:eures?)?\b", r"in \1 hours"
    for word, hour in (("midi", 12), ("minuit", 0)):
        yield rf"\b(?:à )?{word} et demie?\b", f"at {hour}:30"
        yield rf"\b(?:à )?{word} et quart\b", f"at {hour}:15"
    yield r"\btoutes les (\d+) ?h(?:eures?)?\b", r"every \1 hours"
    time = r"(?:\b(?:à|vers|dès) )?\b(\d{1,2}) ?h(?:eures?)?\b ?"
    yield time + r"et demie\b", HALF_PAST
    yield time + r"et quart\b", QUARTER_PAST
    yield time + r"moins le quart\b", QUARTER_TO
    yield time + r"moins (\d{1,2})\b", r"at \2 to \1"
    minutes = r"(?:\b(?:à|vers|dès) )?\b(\d{1,2}) ?(?:h(?:eures?)? ?|:)(\d{2})?(?::00)?"
    yield r"(?<!at )(?<!\d)" + minutes + r"\b", at_within("")
    for word, part in (
        ("du matin", MORNING),
        ("de l'après-midi", AFTERNOON),
        ("du soir", EVENING),
        ("de la nuit", NIGHT),
    ):
        yield rf"(?<=\d) +{word}\b", part
    yield r"\baprès-demain\b", "day after tomorrow"
    yield r"\bdemain\b", "tomorrow"
    yield r"\baujourd'hui\b", "today"
    yield r"\bcette nuit\b|\bla nuit prochaine\b", "tonight"
    yield r"\b(?:toutes les nuits|chaque nuit)\b", "every night"
    yield r"\b(?:dans la |la )?nuit\b", "night"
    yield r"\b(?:de )?la semaine prochaine\b", "next week"
    yield r"\b(?:1 fois par jour|quotidiennement)\b", "every day"
    yield r"\b(?:tous les matins|chaque matin)\b", "every morning"
    yield r"\b(?:tous les après-midis?|chaque après-midi)\b", "every afternoon"
    yield r"\b(?:tous les soirs|chaque soir)\b", "every evening"
    yield r"\b(?:ce |cet )(?=matin|soir|après-midi)", "this "
    yield r"\b(?:le )?matin\b", "morning"
    yield r"\b(?:l')?après-midi\b", "afternoon"
    yield r"\b(?:le )?soir\b", "evening"
    yield r"\b(?:à )?midi\b", "noon"
    yield r"\b(?:à )?minuit\b", "midnight"
    yield r"\b(?:tous les |chaque )?jours? (?:ouvrés?|ouvrables?)\b|\ben semaine\b", "every weekday"
    yield r"\b(?:tous les |chaque |le |les )week-?ends?\b", "every weekend"
    yield r"\b1 jour sur 2\b", "every other day"
    yield r"\b(?:du|de chaque|de) mois\b", "of the month"
    yield from named("1er|premier deuxième|second troisième quatrième dernier", ORDINALS)
    days = "lundi mardi mercredi jeudi vendredi samedi dimanche"
    any_day = days.replace(" ", "|")
    yield from named(days, EVERY_WEEKDAY, r"s\b")
    yield rf"\b({any_day}) prochain\b", r"coming \1"
    yield rf"\bdu (?={any_day})", ""
    yield rf"\b({any_day}) au (?={any_day})", r"\1 to "
    yield rf"\ble (?={any_day})", "every "
    yield from named(days, WEEKDAYS)
    yield from named(
        "janvier f[ée]vrier mars avril mai juin juillet ao[ûu]t septembre octobre novembre d[ée]cembre",
        MONTHS,
    )
    yield r"\ble (\d{1,2})(?= (?:of the month|à|at|,)|$)", r"on the \1th"
    yield r"\b(?:tous|toutes) les\b|\bchaque\b", "every"
    yield r"\bevery every\b", "every"
    yield from named(
        r"secondes? minutes heures? jours? semaines? mois ans|années?|(?<=every\s)an|(?<=\d\s)an",
        UNITS,
    )
    yield ONE_UNIT
    yield r"\b(?:dans|d'ici)\b", "in"
    yield r"\bet\b", "and"
    yield r"\ble\b", "on the"
    yield r"(?<!\w)(?:à|vers|dès)(?!\w)", "at"


def spanish() -> Iterator[Rewriting]:
    yield r"\bquince días\b", "2 semanas"
    yield r"\b(?:en|dentro de) ocho días\b", EIGHT_DAYS
    yield r"\btres cuartos de hora\b", "45 minutes"
    yield from numbers(
        "un[ao]? dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince diecis[ée]is diecisiete dieciocho diecinueve veinte treinta"
    )
    yield r"\b(?:el )?" + SLASHED, r"\1.\2.\3"
    yield r"\b(\d+) horas y media\b", r"\1.5 horas"
    yield r"\bmedia hora\b", "half an hour"
    yield r"\b(?:1 )?hora y media\b", "90 minutes"
    yield r"\b(?:1 )?cuarto de hora\b", "15 minutes"
    time = r"\ba las? (\d{1,2})"
    yield time + r" y media\b", HALF_PAST
    yield time + r" y cuarto\b", QUARTER_PAST
    yield time + r" menos cuarto\b", QUARTER_TO
    yield time + r" menos (\d{1,2})\b", r"at \2 to \1"
    yield time + r" y (\d{1,2})(?! horas)\b", at_time
    yield r"\ba las 12(?::00)? (?:de|por) la mañana\b", "at noon"
    for word, part in (("mañana|madrugada", MORNING), ("tarde", AFTERNOON), ("noche", NIGHT)):
        yield rf"(?<=\d)(?: horas| h)? (?:de|por|en) la (?:{word})\b", part
    yield r"(?<=\d) del mediodía\b", NOON
    yield r"\ba las? (?=\d)", "at "
    yield r"\bpasado mañana\b", "day after tomorrow"
    yield r"\b(?:todas las mañanas|cada mañana)\b", "every morning"
    yield r"\b(?:todas las tardes|cada tarde)\b", "every afternoon"
    yield r"\b(?:todas las noches|cada noche)\b", "every night"
    yield r"\besta (?:noche|madrugada)\b", "tonight"
    yield r"\b(?:de )?la (?:próxima semana|semana que viene)\b", "next week"
    yield r"\besta (?=mañana|tarde)", "this "
    yield r"\b(?:por|en) la mañana\b|(?<=this )mañana\b", "morning"
    yield r"\b(?:por la )?tarde\b", "afternoon"
    yield r"\b(?:por la )?noche\b", "night"
    yield r"\bmañana\b", "tomorrow"
    yield r"\bhoy\b", "today"
    yield r"\b(?:al?|a) mediodía\b", "noon"
    yield r"\b(?:a )?medianoche\b", "midnight"
    yield (
        r"\b(?:los |cada |todos los )?días? (?:laborables?|hábiles|hábil)\b|\bentre semana\b",
        "every weekday",
    )
    yield r"\b(?:los |cada |todos los )?fin(?:es)? de semana\b", "every weekend"
    yield r"\b(?:a diario|diariamente)\b", "every day"
    yield r"\bmensualmente\b", "monthly"
    yield r"\bsemanalmente\b", "weekly"
    yield r"\bcada 2 días\b|\b1 día sí y (?:otro|1) no\b", "every other day"
    yield r"\b(?:de cada|del|cada) mes\b(?! el)", "of the month"
    second = r"segundo(?=\s\s?\w+\sof|\s\s?[lmjvsd]\w+)"  # else a unit
    yield from named(f"primero? {second} tercero? cuarto último", ORDINALS)
    days = "lunes martes mi[ée]rcoles jueves viernes s[áa]bados? domingos?"
    any_day = days.replace(" ", "|")
    yield rf"\b(?:el )?pr[óo]ximo (?={any_day})", "coming "
    yield rf"\b(?:el )?({any_day}) (?:que viene|pr[óo]ximo)\b", r"coming \1"
    yield rf"\b(?:todos los|los|cada) (?={any_day})", "every "
    yield rf"\bde (?=(?:{any_day}) a )", "every "
    yield rf"\b({any_day}) a (?={any_day})", r"\1 to "
    yield rf"\bel (?={any_day})", "on "
    yield from named(days, WEEKDAYS)
    yield from named(
        "enero febrero marzo abril mayo junio julio agosto sep?tiembre octubre noviembre diciembre",
        MONTHS,
    )
    yield r"\bel (?:día )?(\d{1,2})(?= (?:of the month|at|,)|$)", r"on the \1th"
    yield r"\bel (?:día )?(\d{1,2}) de\b", r"on \1"
    yield rf"\b(\d{{1,2}}) de (?={'|'.join(MONTHS).lower()})", r"\1 "
    yield r"\bdel? (?=\d{4}\b)", ""
    yield r"\b(?:todos|todas) l[oa]s\b|\bcada\b", "every"
    yield from named("segundos? minutos? horas? días? semanas? mes(?:es)? años?", UNITS)
    yield ONE_UNIT
    yield r"\b(?:dentro de|en) (?=\d|half|an? )", "in "
    yield r"\bel (?=first|second|third|fourth|last)", "on the "
    yield r"\by\b", "and"


def russian() -> Iterator[Rewriting]:
    ordinals = "первого второго третьего четвёртого пятого шестого седьмого восьмого девятого десятого одиннадцатого двенадцатого"
    for number, word in enumerate(ordinals.replace("ё", "[её]").split()):
        yield rf"\b(?:в )?пол(?:овине )?-?{word}\b", f"at half past {number or 12}"
        yield rf"\b(?:в )?четверть {word}\b", f"at quarter past {number or 12}"
    yield from numbers(
        "один|одну два|две три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать тридцать"
    )
    for word, english in (
        ("четверти", "quarter"),
        ("пяти", "five"),
        ("десяти", "ten"),
        ("пятнадцати", "15"),
        ("двадцати", "twenty"),
    ):
        yield rf"\b(?:в )?без {word} (?:минут )?(\d{{1,2}})", rf"at {english} to \1"
    yield r"\b(\d+) с половиной (?=час)", r"\1.5 "
    yield r"\bпервого числа\b", "1 числа"
    yield r"\b(\d{1,2})\.(\d{1,2})(?= в\b)", r"\1.\2."
    yield r"\bполтора часа\b", "90 minutes"
    yield r"\bпол ?часа\b", "half an hour"
    yield r"\b(?:1 )?четверть часа\b", "15 минут"
    yield r"\bчерез день\b", "tomorrow_or_every_other_day"  # to most, and to some
    yield r"\b(минут|час|дн|недел)(?:ы|а|ов|я|и|ей)? через (\d+)", r"через \2 \1ов"
    yield r"\bпару (?=час|мин|дн|недел|месяц)", "2 "
    yield r"\bчерез каждые\b", "каждые"
    yield r"\bкажд\w+ (\d{1,2})(?:-?[ег]о?е?)? число\b", r"\1 числа каждого месяца"
    yield r"\bкажд\w+ втор\w+(?! \w+ месяца)\b", "every other"
    yield r"\bчерез (?=минуту|час\b|день|неделю|месяц|год)", "in 1 "
    yield r"\bчерез\b", "in"
    # "через 3 дня" and "раз в 3 дня" are no times of day
    time = r"(?<!at )(?<!past )(?<! to )(?<![\d:])(?<!in )(?<!раз )(?<!кажд[а-я]{2} )(?<!раз в )\b(?:в |к )?(\d{1,2})(?:[:.](\d{2}))?(?: час(?:а|ов)?)? "
    hours = (("утра", MORNING), ("дня", AFTERNOON), ("вечера", EVENING), ("ночи", NIGHT))
    for word, part in hours:
        yield rf"\bв час {word}\b", f"at 1{part}"
        yield rf"{time}{word}\b", at_within(part)
        yield (
            rf"(?<=[a-z:]\d\d) {word}\b|(?<=(?:ast| to) \d) {word}\b|(?<=(?:ast| to) \d\d) {word}\b",
            part,
        )
    yield r"(?<!раз )\bв час\b(?! пик)", "at 1:00"
    yield r"\bв (\d{1,2}) час(?:а|ов)?(?: (\d{1,2}) минут\w?)?", at_time
    yield r"\bпослезавтра\b", "day after tomorrow"
    yield r"\bзавтра\b", "tomorrow"
    yield r"\b(?:сегодня|этой|ближайшей) ночью\b", "tonight"
    yield r"\b(?:каждую ночь|по ночам|еженощно)\b", "every night"
    yield r"\bна следующей неделе\b", "next week"
    yield r"\bсегодня\b", "today"
    yield r"\b(?:каждое утро|по утрам)\b", "every morning"
    yield r"\b(?:каждый вечер|по вечерам)\b", "every evening"
    yield r"\bутром\b", "morning"
    yield r"\bдн[её]м\b", "afternoon"
    yield r"\bвечером\b", "evening"
    yield r"\bночью\b", "night"
    yield r"\bв полдень\b", "noon"
    yield r"\bв полночь\b", "midnight"
    yield (
        r"\b(?:по будням|по рабочим дням|в будни|кажд\w+ (?:будний|рабочий) день)\b",
        "every weekday",
    )
    yield r"\b(?:по выходным|в выходные|кажд\w+ выходн\w+)\b", "every weekend"
    yield r"\bежедневно\b|\bраз в день\b", "every day"
    yield r"\bежечасно\b|\bраз в час\b", "every hour"
    yield r"\bеженедельно\b|\bраз в неделю\b", "weekly"
    yield r"\bежемесячно\b|\bраз в месяц\b", "monthly"
    yield r"\bежегодно\b|\bраз в год\b", "yearly"
    yield r"\bраз в (?=\d)", "every "
    yield r"\b(?:кажд\w+ месяца|(?<!\d )месяца)\b", "of the month"
    ordinals = "перв(?:ый|ую|ое|ая) втор(?:ой|ую|ое) трет(?:ий|ью|ье) четв[её]рт(?:ый|ую|ое) последн(?:ий|юю|ее)"
    for word, english in zip(ordinals.split(), ORDINALS, strict=True):
        yield rf"\b(?:во? )?{word}\b", f"on the {english}"
    days = "(?:понедельник|пн) (?:вторник|вт) (?:сред|ср) (?:четверг|чт) (?:пятниц|пт) (?:суббот|сб) (?:воскресень|вс)"
    any_day = days.replace(" ", "|")
    yield rf"\bсо? (?=(?:{any_day})\w* (?:по|до) )", "every "
    yield rf"\b((?:{any_day})\w*) ?(?:по|до|-|–) ?(?=(?:{any_day}))", r"\1 to "
    yield rf"\bпо (?={any_day})", "every "
    yield rf"\b(?:во? )?следующ\w+ (?={any_day})", "next "
    yield r"\bкажд\w+\b", "every"
    yield rf"\bво? (?={any_day})", "on "
    yield from named(days, WEEKDAYS, r"(?:ам|ям|а|у|ы|е|я|и)?\b")
    yield from named(
        "январ[яь] феврал[яь] марта? апрел[яь] ма[яй] июн[яь] июл[яь] августа? сентябр[яь] октябр[яь] ноябр[яь] декабр[яь]",
        MONTHS,
    )
    yield r"\b(\d{1,2})(?:-?го)?(?: числа)(?= |,|$)", r"on the \1th"
    yield from named(
        r"секунд\w? мин(?:ут(?:\w|ов)?)? час(?:а|ов)? день|дня|дней|днов недел(?:ю|и|ь|ов) месяц(?:а|ев)? год(?:а)?|лет",
        UNITS,
    )
    yield ONE_UNIT
    yield r"\bи\b", "and"
    yield r"\b(?:во?|к) (?=\d)", "at "


def chinese_number(match: re.Match[str]) -> str:
    """A number up to 99, in digits; what is no number stays as it is."""
    digits = dict(zip("零一二三四五六七八九两", [*range(10), 2], strict=True))
    tens, ten, ones = match[0].rpartition("十")
    try:
        if not ten:
            return str(digits[ones[-1]])
        return str(10 * (digits[tens[-1]] if tens else 1) + (digits[ones] if ones else 0))
    except KeyError:
        return match[0]


def of_month(nth: Mapping[str, str], day: str) -> Replacement:
    return lambda match: f" on the {nth[match[1]]} {day.lower()} of the month "


def chinese() -> Iterator[Rewriting]:
    yield (
        r"(?<=[周期][一二三四五六日天])(?=(?:[一二两三四五六七八九]|二?十[一二三四五六七八九]?)点)",
        " ",
    )
    yield (
        r"[零一二两三四五六七八九十]+(?=点|分|个?小时|天|周(?![一二三四五六日天])|个?星期(?!$|[一二三四五六日天])|个?半?小时|个?月|年后|日|号)(?<!周[一二三四五六])(?<!星期[一二三四五六])",
        chinese_number,
    )
    yield r"(?<=点)[一二三四五六七八九十]+", chinese_number
    yield r"(?<=点)([13])刻", lambda m: f"{int(m[1]) * 15}分"
    yield r"差[1一]刻(\d{1,2})点", r" at quarter to \1 "
    yield r"[1一]刻钟", "15分钟"
    yield r"[3三]刻钟", "45分钟"
    yield r"(\d+)个半小时(?:之|以)?后", r" in \1.5 hours "
    yield r"半个?小时(?:之|以)?后", " in half an hour "
    yield r"每半个?小时", " every half hour "
    yield r"每(\d+)个半小时", r" every \1.5 hours "
    yield r"每隔1?(?:天|日)", " every other day "
    yield r"每隔1?个?(?:周|星期)(?:的)?(?![二三四五六日天])", " every other week "
    yield r"每隔1个?小时", " every 2 hours "
    yield r"大后天", " in 3 days "
    yield r"每个?月的?最后(?:一|1)天", " on the last day of the month "
    for unit, english in (("秒钟?", "seconds"), ("分钟?", "minutes"), ("个?小时", "hours"), ("天", "days"), ("(?:周|个星期)", "weeks"), ("个月", "months"), ("年", "years")):  # fmt: skip
        yield rf"(?:过)?(\d+) ?{unit}(?:之|以)?后", rf" in \1 {english} "
        yield rf"每隔?(\d+) ?{unit}", rf" every \1 {english} "
    yield r"每(?:隔一天|隔1天)|隔天", " every other day "
    yield r"每个?小时", " every hour "
    yield r"每分钟", " every minute "
    yield "：", ":"
    yield r"每晚", " every evening "
    yield r"每早", " every morning "
    yield "(?<=点)半", "30"
    time = r"(\d{1,2}) ?[点:](?:钟|整)?(?:(\d{1,2})分?)?"
    parts = (
        ("早上|上午|清晨|早晨|(?<=[今明])早", MORNING),
        ("中午", NOON),
        ("下午", AFTERNOON),
        ("晚上|傍晚|(?<=[今明])晚", EVENING),
        ("半夜|夜里|深夜|夜间", NIGHT),
    )
    yield r"凌晨12(?=[点:])", "凌晨0"
    # The evening of a day that is named, with its night.
    yield rf"(?<=[今明天日一二三四五六])(?:晚上?|傍晚){time}", lambda m: f" evening {at_time(m)} "
    yield rf"凌晨{time}", at_within(MORNING)
    for word, part in parts:
        yield rf"(?:{word}){time}", at_within(part)
    yield r"(\d{1,2}) ?点(?!\d)(?:钟|整)?", r" at \1 "
    yield r"(\d{1,2}) ?点(?:钟)?(\d{1,2})分?", at_within("")
    yield r"(?<!at )(?<![\d:])(\d{1,2}:\d{2}(?::\d{2})?)", r" at \1 "
    yield r"(?:今天?|今日)(?:夜里|半夜|深夜)|今夜", " tonight "
    yield r"今晚", " today evening "
    yield r"明晚", " tomorrow evening "
    yield r"明早", " tomorrow morning "
    yield r"后天", " day after tomorrow "
    yield r"(?:明天|明日|明(?= at| evening))", " tomorrow "
    yield r"(?:今天|今日|今(?= at| evening))", " today "
    yield r"(?:早上|上午|清晨)", " morning "
    yield r"中午", " noon "
    yield r"下午", " afternoon "
    yield r"(?:晚上|傍晚)", " evening "
    yield r"半夜|午夜", " midnight "
    yield r"每?个?工作日", " every weekday "
    yield r"每个?周末", " every weekend "
    yield r"每天|每日", " every day "
    yield r"每周(?![一二三四五六日天\d])", " every week "
    yield r"(?<=[周期])[一二三四五六日天]{2,7}", lambda days: "和周".join(days[0])
    nth = dict(zip("第一 第二 第三 第四 最后一".split(), ORDINALS, strict=True))
    for number, day in enumerate(WEEKDAYS):
        name = f"[{'一二三四五六'[number] if number < 6 else '日天'}]"
        yield (
            rf"每个?月的?({'|'.join(nth)})个?(?:周|星期|礼拜){name}",
            of_month(nth, day),
        )
        yield rf"每个?(?:周|星期|礼拜){name}", f" every {day.lower()} "
        yield rf"下个?(?:周|星期|礼拜){name}", f" next week {day.lower()} "
        yield rf"(?:这|本)?个?(?:周|星期|礼拜){name}", f" {day.lower()} "
    yield r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]", r" \1-\2-\3 "
    yield r"每年(?=\d)", " every year "
    yield (
        r"(\d{1,2})月(\d{1,2})[日号]",
        lambda m: f" on {m[2]} {MONTHS[(int(m[1]) - 1) % 12].lower()} ",
    )
    yield r"每个?月的?(\d{1,2})[日号]", r" on the \1th of the month "
    yield r"(\d{1,2})[日号]", r" on the \1th "
    yield r"到|至", " - "
    yield r"和|、|及", " and "
    yield r"(?<=[a-z\d] )的|，|,", " "


RULES: Mapping[str, Callable[[], Iterator[Rewriting]]] = {
    "de": german,
    "es": spanish,
    "fr": french,
    "ru": russian,
    "zh": chinese,
}
