"""Notes, what was said before, and what should happen later."""

import re
from random import Random

from pocket.dialogue import Answer, Exchange, Result, User, World, call, quote
from pocket.lexicon import MONTHS, WEEKDAYS
from pocket.sentences import coming, errand, fact, occasion
from pocket.wishes.talk import borrowed
from pocket.wordings.memory import (
    RECALL,
    RECALL_DONE,
    RECALL_OWN,
    RECALL_PERSON,
    REMEMBER,
    REMIND,
    REMIND_OF,
    REMIND_THAT,
    SUMMARY,
    SUMMARY_OFTEN,
    TASK,
)
from pocket.words import invented, noun, number, person, place, repo, thing

ATTRIBUTES = "number code size name colour address password price date birthday plan key doctor dentist model brand place allergy seat pin teacher appointment password plate account time day".split()
JOBS = "the disk space|the free memory|the GPU temperature|the uptime|the git status of {}|the files in {}|the log {}|the tests of {}|the load|the backup|the new files|the errors in {}|the weather station {}".split(
    "|"
)


def day_time(random: Random) -> str:
    hour, minute = random.randint(0, 23), random.choice((0, 0, 15, 30, 45, random.randint(0, 59)))
    half = random.choice(("am", "pm", " am", " pm", " o'clock"))
    return random.choice(
        (
            f"{hour}:{minute:02}",
            f"{hour:02}:{minute:02}",
            f"{random.randint(1, 12)}",
            f"{random.randint(1, 12)}{half}",
            f"{random.randint(1, 12)}:{minute:02} {random.choice(('am', 'pm'))}",
            "noon",
            "midnight",
            f"half past {random.choice((*COUNTS[:8], random.randint(1, 12)))}",
            f"quarter past {random.choice((*COUNTS[:8], random.randint(1, 12)))}",
        )
    )


COUNTS = (
    "two three four five six seven eight nine ten twelve fifteen twenty thirty forty ninety".split()
)


def _weekday(random: Random) -> str:
    day = random.choice(WEEKDAYS)
    return day if random.random() < 0.7 else day.lower()


def once(random: Random) -> str:
    count = random.choice(
        (number(random, random.choice((1, 2))), number(random, 2), random.choice(COUNTS))
    )
    unit = random.choice(
        ("minutes", "hours", "days", "weeks", "min", "minutes", "hours", "seconds")
    )
    return random.choice(
        (
            f"in {count} {unit}",
            f"in {count} {unit}",
            f"in {random.choice(('an hour', 'half an hour', 'a week', 'a minute', 'a day', 'a quarter of an hour', 'a month', 'two and a half hours'))}",
            f"tomorrow at {day_time(random)}",
            f"{random.choice(('tomorrow', 'tonight', 'this evening', 'tomorrow morning', 'tomorrow evening', 'this afternoon', 'at lunch time', 'the day after tomorrow', 'next week', 'at the weekend'))}",
            f"at {day_time(random)}",
            f"today at {day_time(random)}",
            f"on {_weekday(random)} at {day_time(random)}",
            f"next {_weekday(random)}",
            f"on {_weekday(random)}",
            f"tonight at {day_time(random)}",
            f"on {random.choice(('1', '2', '3', '5', '12', '24', '30'))} {random.choice('January March April May June July August October December'.split())}",
            f"{count} {unit} from now",
            f"{random.choice(('', 'at '))}{day_time(random)} {random.choice(('tomorrow', 'today', 'tonight'))}",
            f"{random.choice(('tomorrow', 'today', 'tonight', 'tmrw', 'this evening'))} {day_time(random)}",
            f"{_weekday(random)} {random.choice(('', 'at '))}{day_time(random)}",
            f"{random.choice(('this', 'coming'))} {_weekday(random)}",
            f"on {random.choice('January March May June July'.split())} {number(random, 1)} at {day_time(random)}",
        )
    )


def often(random: Random) -> str:
    count = random.choice((number(random, random.choice((1, 2))), random.choice(COUNTS)))
    return random.choice(
        (
            f"every {random.choice(('day', 'morning', 'weekday', 'evening', 'night', 'weekend'))} at {day_time(random)}",
            f"every {_weekday(random)} at {day_time(random)}",
            f"every {_weekday(random)}",
            f"every {count} {random.choice(('hours', 'minutes', 'days'))}",
            f"every {random.choice(('hour', 'day', 'morning', 'evening', 'week', 'month', 'weekday', 'night'))}",
            f"daily at {day_time(random)}",
            f"each {random.choice(('morning', 'evening', 'day', _weekday(random)))}{random.choice(('', f' at {day_time(random)}'))}",
            f"weekdays at {day_time(random)}",
            "once a week",
            f"on the first of {random.choice(('every', 'each'))} month",
            f"on the {random.choice(('1st', '2nd', '3rd', '5th', '10th', '15th', '20th'))} of {random.choice(('every', 'each', 'the'))} month",
            f"every {random.choice(('working day', 'workday', 'afternoon'))} at {day_time(random)}",
            f"{_weekday(random)}s at {day_time(random)}",
            f"on {_weekday(random)}s",
            f"Monday to Friday at {day_time(random)}",
            f"weekly on {_weekday(random)} at {day_time(random)}",
            f"each {_weekday(random)} at {day_time(random)}",
            f"every {random.choice(('morning', 'evening', 'day', 'night'))} {random.choice(('at', 'around'))} {day_time(random)}",
            f"on weekdays at {day_time(random)}",
            f"every {_weekday(random)} {random.choice(('morning', 'evening'))}",
        )
    )


def remember(world: World) -> Exchange:
    random = world.random
    note = fact(random)
    world.notes.append(note)
    result = random.choice(
        (
            f"Saved note {number(random, 2)}.",
            "Saved.",
            f"Saved: {note}",
            f"Saved: {note}",
            f"Was saved before: {note}",
            f"Noted: {note}",
            f"note {number(random, 1)} saved",
            "Saved a note.",
            f"Saved note {number(random, 1)}: {note}",
        )
    )
    return [
        world.say(REMEMBER, fact=note),
        call("remember", note=note),
        Result(result),
        Answer(f"Noted: {note}"),
    ]


def recall(world: World) -> Exchange:
    """The query is the thing or person asked about, copied from the question."""
    random = world.random
    words, topic = _asked(world)
    if random.random() < 0.15:
        nothing = ("nothing found", "nothing found", "No results.", "Nothing found.", "(nothing)")
        return [
            words,
            call("recall", query=topic),
            Result(random.choice(nothing)),
            Answer(f"I found nothing about {topic}."),
        ]
    found = [_found(random, topic)]
    if random.random() < 0.3:
        found += [_found(random, topic) for _ in range(random.randint(1, 2))]
    result = "\n".join(_dated(random, text) for text in found)
    if len(found) > 1:
        return [words, call("recall", query=topic), Result(result), Answer(quote(result))]
    return [
        words,
        call("recall", query=topic),
        Result(random.choice((result, result, result, f"notes:\n{result}"))),
        Answer(f"I found: {result.removeprefix('- ')}"),
    ]


def _asked(world: World) -> tuple[User, str]:
    random = world.random
    roll = random.random()
    if roll < 0.2:
        name = person(random)
        return world.say(RECALL_PERSON, person=name), name
    topic = owned(random)
    wordings = RECALL_DONE if roll < 0.45 else RECALL if roll < 0.78 else RECALL_OWN
    words = world.say(wordings, topic=topic).words
    if "'s " in topic:
        words = re.sub(rf"\b(my|the|our) {re.escape(topic)}", topic, words)
    return User(words), topic


def owned(random: Random) -> str:
    """What a person may ask about: a thing, a thing's number, a person's thing."""
    roll = random.random()
    if roll < 0.3:
        return noun(random)
    if roll < 0.6:
        return f"{noun(random)} {random.choice(ATTRIBUTES)}"
    if roll < 0.75:
        return thing(random)
    if roll < 0.87:
        return f"{person(random)}'s {random.choice((noun(random), random.choice(ATTRIBUTES)))}"
    if roll < 0.92:
        return f"{noun(random)} {noun(random)} {random.choice(ATTRIBUTES)}"
    return invented(random)


def _found(random: Random, topic: str) -> str:
    value = random.choice((noun, thing, person, number, place, invented))(random)
    return random.choice(
        (
            f"my {topic} is {value}",
            f"the {topic} is {value}",
            f"{topic}: {value}",
            f"the {topic} is in the {thing(random)}",
            f"I {random.choice(('parked', 'bought', 'left', 'put', 'keep'))} the {topic} {random.choice(('in', 'at', 'behind', 'near'))} {place(random)}",
            f"{topic} {random.choice(('likes', 'needs', 'starts at', 'costs', 'comes with'))} {value}",
            f"{person(random)} {random.choice(('fixed', 'has', 'sold me', 'knows'))} the {topic}",
            fact(random),
        )
    )


def _dated(random: Random, text: str) -> str:
    day = f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    return random.choice(
        (f"{day} {text}", f"{day} {text}", f"{day} {text}", f"- {text} ({day})", f"{day}: {text}")
    )


def noted(world: World) -> Exchange:
    """A note saved in this conversation answers without a tool."""
    if not world.notes:
        return remember(world)
    note = world.random.choice(world.notes[-3:])
    asked = (
        "what did I just {tell you|say|ask you to remember|ask you to note}",
        "what did you {just |}{note|save|write down}",
        "what was the last note",
    )
    return [world.say(asked), Answer(f"You told me: {world.notes[-1]}")] if note else []


def shown(world: World) -> Exchange:
    """A note in a context block, now or earlier, answers without a tool."""
    random = world.random
    fresh = (
        [_owned(random) for _ in range(random.randint(1, 4))]
        if not world.shown or world.chance(0.5)
        else []
    )
    world.shown = [
        (topic, note) for topic, note in world.shown if topic not in {t for t, _ in fresh}
    ] + fresh
    topic, note = random.choice(world.shown)
    words = world.say(RECALL_OWN + RECALL if world.chance(0.3) else RECALL_OWN, topic=topic)
    return [
        User(words.words, notes=tuple(note for _, note in fresh)),
        Answer(f"You told me: {note}"),
    ]


def _owned(random: Random) -> tuple[str, str]:
    topic = random.choice((noun, thing, invented))(random)
    value = random.choice((noun, thing, person, invented, number, place))(random)
    link = random.choice(
        ("is", "is", "is", "is called", "is in", "lives in", "costs", "name is", "starts at")
    )
    return (
        (f"{topic}'s name", f"my {topic}'s name is {value}")
        if link == "name is"
        else (topic, f"my {topic} {link} {value}")
    )


_REMINDERS = ((REMIND, errand), (REMIND, borrowed), (REMIND_OF, occasion), (REMIND_THAT, coming))
_REMINDER_SHARES = (0.54, 0.12, 0.24, 0.1)


def remind(world: World) -> Exchange:
    random = world.random
    when = (once if random.random() < 0.75 else often)(random)
    wordings, make = random.choices(_REMINDERS, _REMINDER_SHARES)[0]
    task = make(random)
    return [
        world.say(wordings, when=when, errand=task),
        call("schedule", when=when, task=task, kind="remind"),
        *planned(random, when, "remind", task),
    ]


def summary(world: World) -> Exchange:
    random = world.random
    if world.chance(0.08):
        return _daily_summary(world)
    when, task = (often if random.random() < 0.8 else once)(random), repo(random)
    return [
        world.say(SUMMARY, when=when, repo=task),
        call("schedule", when=when, task=task, kind="summary"),
        *planned(random, when, "summary", task),
    ]


def _daily_summary(world: World) -> Exchange:
    """How often stands before the summary, at which time behind it."""
    random = world.random
    rate, at, task = random.choice(("daily", "weekly")), day_time(random), repo(random)
    at = f"at {at}" if rate == "daily" else f"on {_weekday(random)} at {at}"
    when = f"{rate} {at}"
    return [
        world.say(SUMMARY_OFTEN, often=rate, at=at, repo=task),
        call("schedule", when=when, task=task, kind="summary"),
        *planned(random, when, "summary", task),
    ]


def task(world: World) -> Exchange:
    random = world.random
    when, job = (
        (often if random.random() < 0.7 else once)(random),
        random.choice(JOBS).format(random.choice((repo, noun))(random)),
    )
    words = world.say(TASK, when=when, job=job)
    spoken = words.words
    verb = next(
        v
        for v in (
            "check",
            "look at",
            "look up",
            "measure",
            "report",
            "show me",
            "tell me",
            "list",
            "run",
            "send me",
        )
        if f"{v} {job}" in spoken
    )
    job = f"{verb} {job}"
    return [
        words,
        call("schedule", when=when, task=job, kind="task"),
        *planned(random, when, "task", job),
    ]


def planned(random: Random, when: str, kind: str, task: str) -> Exchange:
    """The result of planning: half the time in the product's own words; the answer has no more than the first date."""
    if random.random() < 0.03:
        return [
            Result(f"Error: cannot understand the time {when!r}"),
            Answer("That time was not understood. When exactly?"),
        ]
    if random.random() < 0.5:
        return _told(random, kind, task)
    result = _planned_otherwise(random, when, task)
    return [Result(result), Answer(f"Done: {result}")]


def _told(random: Random, kind: str, task: str) -> Exchange:
    what = {"remind": f"Reminder “{task}”", "summary": f"Summary of {task}"}.get(
        kind, f"Task “{task}”"
    )
    at = f"{random.randint(0, 23):02}:{random.choice((0, 0, 15, 30, random.randint(0, 59))):02}"
    head = f"Planned as job {number(random, random.choice((1, 1, 2)))}: {what}, "
    if random.random() < 0.5:
        head += f"once, on {_day(random)} 2026 at {at}."
        return [Result(head), Answer(f"Done: {head}")]
    days = ("day", "weekday", random.choice(WEEKDAYS), random.choice(WEEKDAYS))
    monthly = f"on day {random.randint(1, 28)} of each month"
    head += f"{random.choice((*(f'every {day}' for day in days), monthly))} at {at}; next: "
    first, *more = (f"{_day(random)} {at}" for _ in range(3))
    return [Result(f"{head}{', '.join((first, *more))}."), Answer(f"Done: {head}{first}.")]


def _day(random: Random) -> str:
    day, month = random.choice(WEEKDAYS)[:3], random.choice(MONTHS)[:3]
    return f"{day} {random.randint(1, 28):02} {month}"


def _planned_otherwise(random: Random, when: str, task: str) -> str:
    stamp = f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02} {random.randint(0, 23):02}:{random.randint(0, 59):02}"
    job = number(random, random.choice((1, 1, 2)))
    day = random.choice("Mon Tue Wed Thu Fri Sat Sun".split())
    return random.choice(
        (
            f"Job {job}: {task}, next at {stamp}.",
            f"Scheduled job {job}, next {day} {stamp}.",
            f"job {job} at {stamp}",
            f"Planned as job {job}: {task}, {when}; next: {day} {stamp}.",
            f"Scheduled for {day} {stamp} (job {job}).",
            f"Scheduled: {when}. Next: {stamp}",
            f"Job {job} is planned, first at {stamp}.",
            f"Scheduled {job}: {task} ({when}), next {day} {stamp}.",
        )
    )
