"""A text that holds a time and a task: "remind me at 18:00 to prepare the meeting tomorrow at 9:00"."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from agent.language import ENGLISH, translated
from agent.schedule.times.draft import SEVERAL, Draft, Incomplete, NotUnderstood, TwoReadings
from agent.schedule.times.parser import ASK, LONGEST, rule_of, scan, tried_languages
from agent.schedule.times.rule import Once, Rule

REMIND_ENGLISH = (
    "(?:(?:can|could|will|would) you )?(?:please )?remind me(?: (?=to |of |about |that ))?"
)
# Words after which a time belongs to the task: "book a table for Friday at 8".
OF_THE_TASK = frozenset("to after auf nach sur après jusqu'à à um в las 到 至 for about of until till from before since than the my der den dem für über von bis vor ab seit pour de du avant depuis para del sobre desde hasta на про о об до для с except but außer sauf excepto salvo кроме".split())  # fmt: skip
# What no rule says of times: where it stands beside one, the time is asked about.
UNREAD = (
    r"between|until|till|except|but not|from \d|at half \w+|on the (?:half|quarter) hour|\d+ (?:months|years)|next month|(?:once|twice|\w+ times) (?:an?|per|each|every) \w+|bi-?weekly|bi-?monthly|quarterly|every (?:\d+|other) \w+|"
    r"zwischen|außer|ausser|(?:ein|zwei|drei|vier|\d ?)mal\w*|(?:viertel|halb)jährlich|im monat|alle \d+ \w+|"
    r"entre|sauf|jusqu'|en (?:huit|quinze)|\w+ fois par \w+|tou(?:te)?s les \d+ \w+|"
    r"excepto|salvo|\w+ veces (?:al|por) \w+|между|кроме|за исключением|(?:\w+ )?раза? в|с \d+|кажды[ей] \d+ \w+"
)  # fmt: skip
NOT_READ = re.compile(rf"^(?:{UNREAD})\b|\b(?:{UNREAD})$|^除|之间$|[\d两三]次$", re.IGNORECASE)
# The same, only before a time ("a week on Wednesday"), only behind one ("at 9 or 10"), and behind one that repeats.
BEFORE = re.compile(
    r"(?:\b(?:(?<!than )(?:an?|one|two|three|four|\d+) (?:weeks?|fortnights?|days?)|(?:minutes?|hours?|days?|weeks?) (?:before|after|from)|after next|the other|"
    r"alternate|not|every \w+ and(?: on)?|(?:two|three|four|\d+) times|yesterday|"
    r"übernächste[rmsn]?(?: woche)?|vorletzte[rmsn]?|(?:tage?n?|wochen?|stunden?|minuten) (?:vor|nach)|alle \w+ (?:tage|wochen|monate|jahre)|(?:vor)?gestern|nicht|jede\w* \w+ und|"
    r"la semaine d'après|une quinzaine|(?:jours?|heures?|minutes?|semaines?) (?:avant|après)|(?:la |l'avant-)veille.*|fin de \w+|avant-dernier.*|(?:avant-)?hier|"
    r"menos|cada quincena|(?:d[ií]as?|horas?|minutos?|semanas?) (?:antes|después) de(?: la)?|(?:ante)?ayer|a partir|"
    r"через|за этой|(?:дн[яей]+|час[аов]*|минут[уы]?|недел[юией]+) (?:до|после)|(?:поза)?вчера|начиная)|下|隔|从[一-鿿]{2,3}开始)$",
    re.IGNORECASE,
)
BEHIND = re.compile(
    r"(?:or|oder|ou|[ou]|или)(?: at| um| à| a las?| las?| в)? \d|或|到\s*\d|前(?![往面台天后门])|以前|之前|以后|之后",
    re.IGNORECASE,
)
# An hour that is a span: "mardi une heure avant le dentiste".
SPAN = re.compile(r"heures?\s+(?:avant|après|plus t(?:ôt|ard))\b", re.IGNORECASE)
# Days that no clause reads, where a time names no other.
DAYS = re.compile(
    r"(?:\b(?:leap day|(?:my |his |her )?birthday|thanksgiving|halloween|q[1-4](?: \d{4})?|christmas(?: eve| day)?|new year'?s?(?: eve| day)?|easter|the month|next week|(?:mid|early|late)[- ]\w+|"
    r"heiligabend|weihnachten|wochenende|geburtstag|pfingst\w+|himmelfahrt|silvester|neujahr|ostern|monatsende|noël|nouvel an|jour de l'an|toussaint|anniversaire|pâques|fin \w+|"
    r"navidad|nochebuena|nochevieja|pascua|reyes|semana santa|cumpleaños|mes|рождеств\w+|день рождения|нов\w+ год\w*|пасх\w+|месяца|дням|послепослезавтра)|节|月底|前夕)$",
    re.IGNORECASE,
)
# Behind a time that is none.
RELATIVE = re.compile(
    r"^(?:remind me )?(?:before|after|vor|nach|avant|après|antes|después|до|после)\b"
)
WHILE = re.compile(
    r"(?:for|während|pendant|durante) (?:an?|one|two|three|\d+|the next|eine[rs]?|une?|una?)\b|für eine?\b|в течение|(?:until|till|bis|jusqu|hasta|до)\b",
    re.IGNORECASE,
)
AT_TIME = re.compile(
    r"(?:^|\s)(?:at|um|à|a las?|в) \d{1,2}(?:[:.h]\d|\s?(?:h|uhr|[ap]m)\b)", re.IGNORECASE
)
CLAUSE = re.compile(
    r"[.!?;,。！？；，]\s*(?:(?:and|then|und|et|y|и)\s)?|\s(?:and|then|und|et|y|и)\s", re.IGNORECASE
)
MOST_WORDS = 40  # of a time (characters in Chinese)
LONGEST_OF_DAY = 6  # words of a day before a time that were not understood
LONGEST_WITHIN = 12  # the same, where the time has words of the task on both sides
AROUND = " ,;:\n"


def parse_with_task(text: str, now: datetime) -> tuple[Rule, str]:
    """The rule in a text and the rest, which is the task. What is complete at the beginning is the time, and
    whatever else follows is the task's.

    Raises NotUnderstood with the question to ask back.
    """
    question = None
    # The beginning in any language first: the end of "erinnere mich um 9 an den Zug um 15 Uhr" is a time in English, too.
    for form in (TimeInText.at_beginning, TimeInText.split):
        for language in tried_languages():
            try:
                if found := form(TimeInText.of(text, language, now)):
                    return found
            except TwoReadings:
                raise
            except NotUnderstood as error:
                question = question or error
    raise question or NotUnderstood(translated(ASK))


def reminder_at_beginning(text: str, now: datetime) -> Rule | None:
    """The rule of a text that asks to be reminded and says when before anything else, else None."""
    for language in tried_languages():
        with suppress(NotUnderstood):
            request = TimeInText.of(text, language, now)
            found = request.at_beginning() if request.reminded else None
            if found and not RELATIVE.search(found[1]):
                return found[0]
    return None


def asks_for_reminder(text: str, now: datetime) -> bool:
    """Whether a text asks to be reminded, and says when."""
    if any(TimeInText.of(text, language, now).reminded for language in tried_languages()):
        with suppress(NotUnderstood):
            return bool(parse_with_task(text, now))
    return False


def clauses(text: str) -> Iterator[str]:
    """Yield the rest of the text from the beginning of each of its clauses on."""
    yield text
    for clause in CLAUSE.finditer(text):
        yield text[clause.end() :]


@cache
def remind_pattern(language: str) -> re.Pattern[str]:
    """The pattern of a request for a reminder, in English or in any language."""
    if language == ENGLISH:
        return re.compile(f"^(?:{REMIND_ENGLISH})", re.IGNORECASE)
    from agent.schedule.times.languages import REMIND

    return re.compile(f"^(?:{'|'.join([REMIND_ENGLISH, *REMIND.values()])})", re.IGNORECASE)


@dataclass
class TimeInText:
    """Splits a text into time and task. The time is looked for at the beginning, then at the end, then in the middle if
    it names a day. A day at the beginning and a time of day further on are one time. "Remind me" may come before the
    time or before the task."""

    language: str
    now: datetime
    words: list[str]
    reminded: bool
    head: int = 0  # how many words at the beginning are a time that is incomplete
    question: NotUnderstood | None = None

    @classmethod
    def of(cls, text: str, language: str, now: datetime) -> "TimeInText":
        rest = remind_pattern(language).sub("", text.strip())
        words = re.findall(r"[\u4e00-\u9fff]\s*|[^\s\u4e00-\u9fff]+\s*", rest)
        return cls(language, now, words, rest != text.strip())

    def split(self) -> tuple[Rule, str] | None:
        """The rule and the task; None where there is no time. Raises NotUnderstood for half a time."""
        if found := self.at_beginning() or self.at_end() or self.in_the_middle():
            return found
        if self.question:
            raise self.question
        return None

    def at_beginning(self) -> tuple[Rule, str] | None:
        words = self.words
        longest = min(len(words), MOST_WORDS) if self.says_time(0, MOST_WORDS) else 0
        for cut in range(longest, 0, -1):
            try:
                if found := self.found(self.read(words[:cut]), [], words[cut:]):
                    return found
            except Incomplete as error:
                if cut == len(words):
                    raise
                self.question, self.head = self.question or error, self.head or cut
        return None

    def at_end(self) -> tuple[Rule, str] | None:
        words, head = self.words, self.head
        for cut in range(max(head, 1, len(words) - MOST_WORDS), len(words)):
            if draft := self.read(words[cut:]):
                if self.of_the_task(cut):
                    return None
                if draft.said == ["time"] and len(AT_TIME.findall("".join(words))) > len(
                    draft.clocks
                ):
                    raise TwoReadings(translated(SEVERAL))
                if not head:
                    self.ask_of_a_day(draft, cut)
                    return self.found(draft, words[:cut], [])
                with suppress(NotUnderstood):
                    both = self.read(words[:head] + words[cut:])
                    if both and both.said.count("day") < 2:
                        return self.found(both, words[head:cut], [])
                return None
        return None

    def in_the_middle(self) -> tuple[Rule, str] | None:
        words, head, last = self.words, self.head, len(self.words) - 1
        for start in range(head + 1, last) if last < MOST_WORDS else ():
            if self.of_the_task(start) or not self.says_time(start, start + LONGEST_WITHIN):
                continue
            for end in range(min(last, start + LONGEST_WITHIN), start, -1):
                draft = self.read(words[start:end])
                if draft and head and draft.said == ["time"]:
                    draft = self.read(words[:head] + words[start:end])
                if draft and {"day", "span", "every", "cron"} & {*draft.said}:
                    if not head:
                        self.ask_of_a_day(draft, start)
                    with suppress(Incomplete):
                        return self.found(draft, words[head:start], words[end:])
        return None

    def says_time(self, start: int, end: int) -> bool:
        return bool(self.slots("".join(self.words[start:end])))

    def slots(self, phrase: str) -> set[str]:
        """What the clauses at the beginning of a phrase say."""
        return {*scan(phrase[:LONGEST], self.now, self.language, whole=False)[0].said}

    def of_the_task(self, start: int) -> bool:
        """Whether the time that begins there belongs to the task."""
        return self.words[start - 1].strip().lower() in OF_THE_TASK

    def ask_of_a_day(self, draft: Draft, cut: int) -> None:
        """Raise NotUnderstood if words before a time that names no day speak of one: "vendredi 13 à 9h"."""
        if "span" in draft.said or ("day" in draft.said and not draft.same_time):
            return
        # "about Friday every day at 9" is rarer than "from Friday every day at 9"
        lone = draft.said == ["time"]
        for start in range(max(1, cut - LONGEST_OF_DAY), cut):
            phrase = "".join(self.words[start:cut]).strip(AROUND)
            day = "day" in self.slots(phrase) and "'s" not in self.words[start]
            if DAYS.fullmatch(phrase) or (day and not (lone and self.of_the_task(start))):
                raise not_understood(phrase)

    def read(self, words: list[str]) -> Draft | None:
        """Parse words that are nothing but a time; None for others."""
        phrase = "".join(words).strip(AROUND + "-")
        if not 0 < len(phrase) <= LONGEST:
            return None
        draft, left = scan(phrase, self.now, self.language, whole=False)
        return None if left else draft

    def found(
        self, draft: Draft | None, before: list[str], behind: list[str]
    ) -> tuple[Rule, str] | None:
        """The rule, and the words on both sides as the task. Raises NotUnderstood if they speak of the time."""
        if draft is None:
            return None
        rule = rule_of(draft)
        parts = [part for some in (before, behind) if (part := "".join(some).strip(AROUND))]
        said = " ".join(parts)
        task = remind_pattern(self.language).sub("", said).strip(AROUND)
        if not task:
            raise Incomplete(translated("What should I do then?"))
        first, last = ("".join(some).strip(AROUND) for some in (before, behind))
        again = not isinstance(rule, Once) and WHILE.match(last if first else task)
        between = self.head and re.match(rf"{BEHIND.pattern}|(?:week|fortnight)\b", first)
        relative = SPAN.match("".join(self.words[-len(behind) - 1 :]))
        if BEFORE.search(first) or BEHIND.match(last) or between or again or relative:
            raise not_understood(first if BEFORE.search(first) else last)
        if unread := next(filter(NOT_READ.search, parts), ""):
            raise not_understood(unread)
        if self.reminded or task != said:
            return rule, f"remind me {task}"
        return rule, re.sub(r"^(?:to|please|-)\s+", "", task)


def not_understood(rest: str) -> NotUnderstood:
    form = translated("I did not understand “{rest}”. When do you mean?")
    return NotUnderstood(form.format(rest=rest))
