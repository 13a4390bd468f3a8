"""Notes, what was said before, and what should happen later."""

from random import Random

from backend.pocket.dialogue import Answer, Exchange, Result, User, World, call
from backend.pocket.words import errand, fact, invented, noun, number, person, place, repo, thing

REMEMBER = (
    "{remember|please remember|note|save|keep in mind|don't forget|do not forget|memorise|memorize|store|make a note|write down|note down|take note|keep a note|bear in mind|learn}[ that|:| that| for later that| for me that]: $fact",
    "{remember|please remember|note|save|keep in mind|don't forget|do not forget|memorize|make a note|take note|bear in mind|you should know|I want you to remember|I want you to know|never forget} that $fact",
    "{remember|note|save this|remember this|for your memory|keep this in mind|note this|for your notes|a note}: $fact",
    "$fact{, remember that|, please remember| - remember it|, keep that in mind|. Remember that|, don't forget it|. Please note that|, make a note of it|. Save that|, note it down}",
    "{can you|could you|would you|will you} {remember|note|save|keep in mind|make a note} that $fact",
    "{for the record|just so you know|fyi|FYI|by the way|one thing to remember|important}{:|,} $fact[{, remember it|. Please remember|, note that}]",
    "{I'd like|I want} you to {note|keep|save|store|know|retain} {that |this: |}$fact",
    "{put|add|save|write} {in|into|to} {your|the} {notes|memory} {that |: |}$fact",
    "{add a note|make a note|save a note|new note|store a note|take a note}{:| that| saying that| saying|,} $fact",
    "{keep|hold|retain} in {your |}{memory|mind} that $fact",
    "{please |}{don't|never|do not} forget{:|,| this:| that} $fact",
)
RECALL = (
    "what {did I|have I} {say|tell you|told you|said|mention|write} about {my |the |}$topic",
    "{do you remember|do you recall|can you remember|do you still know} {my |the |what I said about my |what I said about the |what I told you about the |anything about the |}$topic",
    "{what do you know|what do you remember|what have you noted|what is noted|what do your notes say|what do you have} about {my |the |}$topic",
    "{look up|recall|search your notes for|search your memory for|look in your notes for|find in your memory|check your notes about|check your notes for|search the notes for} {my |the |what I said about my |}$topic",
    "{what was|remind me what was} {that about |it about |my |the |}$topic{ again|, I told you once| that I mentioned| we talked about}",
    "{have I|did I} {ever |}{mentioned|tell you about|told you about|mention|talked about|said anything about} {my |the |}$topic[ before]",
    "{when did we|did we} {talk|speak|chat} about {the |my |}$topic",
    "{what's|what is|what was} {in your notes|in your memory|noted|saved|known} {about|on|regarding|concerning} {my |the |}$topic",
    "{search|check|go through|look through|consult} {your |my |the |}{notes|memory|past chats|past conversations|old messages|history} {for|about|concerning|and tell me about} {my |the |}$topic",
    "{did|have} {I|we} {ever |already |}{say|said|discuss|discussed|mention|mentioned|talk about|note|noted} {anything about |something about |}{my |the |}$topic",
    "{remind me|tell me again|tell me} {what I said about|what I told you about|what we said about|about} {my |the |}$topic",
    "{what|anything} {have you got|did we say|did I tell you|do I have noted|was said|have we said|did we discuss} {about|on|regarding} {my |the |}$topic",
    "{any|do you have any|have you} {notes|memory|memories|knowledge} {about|of|on} {my |the |}$topic",
)
RECALL_OWN = (
    "{what's|what is|who is|where is|which is|when is|whats|tell me} my $topic",
    "{do you know|do you remember|can you tell me} {what|who|where} my $topic is",
)
REMIND = (
    "{remind|please remind|ping|nudge} me $when to $errand",
    "{remind|please remind|ping|nudge} me to $errand $when",
    "$when{,|} {remind me to|please remind me to|tell me to|I must|I have to|I need to} $errand[{, remind me|}]",
    "{set|make|create|add|schedule} a reminder {to $errand $when|$when to $errand|for $when: $errand|$when: $errand}",
    "{can you|could you|will you} remind me {to $errand $when|$when to $errand}",
    "{reminder|remind me} $when: $errand",
    "{I need|I'd like|I want} {to be reminded|a reminder} {to $errand $when|$when to $errand}",
    "{don't let me forget|make sure I don't forget} to $errand $when",
    "{I have to|I must|I need to|I should|I want to|I've got to} $errand $when{, remind me|, please remind me|. Remind me|, can you remind me|, give me a nudge}",
    "{wake me|alert me|notify me|warn me|poke me|message me|tell me|give me a nudge|drop me a line|write to me|shout} $when {to|so that I|that I should|because I must} $errand",
    "{put|add} {a reminder|it} {in|on} {the calendar|my schedule|my list} {to|for me to} $errand $when",
    "{a reminder|reminder}{:| please:|,} $errand $when",
    "{reminder|remind me}{:| please:| -} {to |}$errand{,|} $when",
    "{schedule|plan|set up|set} {a reminder|an alert|an alarm|a nudge} {$when|for me $when} {to|saying|that I should|for} $errand",
    "{let me know|tell me} $when {to|that I should|that I must|that it's time to} $errand",
    "{I'll forget to|I always forget to|I tend to forget to} $errand{, remind me|, so remind me|. Remind me} $when",
)
SUMMARY = (
    "{send me|give me|write|make|I want|prepare|schedule|post} {a summary|a repository summary|a digest|a report|an overview} of {the |}{repo |repository |}$repo[ {repo|repository}] $when",
    "$when{,|} {summarise|summarize|send me a summary of|give me a summary of|report on|send a digest of|sum up} {the |}{repo |repository |}$repo[ {repo|repository}]",
    "{summarise|summarize|sum up|report on} {the |}{repo |repository |}$repo[ {repo|repository}] $when",
    "{schedule|plan|set up} {a summary|a repository summary|summaries|a digest} {of|for} {the |}$repo[ {repo|repository}] $when",
    "{I want|I'd like} to {know|hear} what {happened|changed|is new} in {the |}$repo[ {repo|repository}] $when",
    "{let me have|I'd like|I need|get me|deliver|provide|produce|mail me|keep me posted with} {a summary|a digest|a report|an overview|news|a recap|an update} {of|on|about|for|from} {the |}{repo |repository |project |}$repo[ {repo|repository|project}] $when",
    "$when {I want|I'd like|I need|give me|post|prepare|write} {a summary|a digest|a recap|an overview|an update|a report} {of|on|about} {the |}{repo |repository |project |}$repo[ {repo|repository|project}]",
    "{recap|digest|review|wrap up|summarise|summarize} {the |}{repo |repository |project |}$repo {for me |}$when",
    "{tell me|keep me informed|update me|inform me|brief me} {$when |}{what happened in|about changes in|about the news in|about|on} {the |}{repo |repository |}$repo[ {repo|repository}] $when",
    "{can you|could you} {summarise|summarize|recap|report on} {the |}{repo |repository |}$repo[ {repo|repository}] $when",
)
TASK = (
    "$when{,|} {check|look at|look up|measure|report|show me|tell me|list|run|send me} $job",
    "{check|report|tell me|measure|show me|list|run|send me} $job $when",
    "{schedule|plan|set up} {a task|a job} $when: {check|report|list|run} $job",
)
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
        )
    )


WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
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
    unit = random.choice(("minutes", "hours", "days", "weeks", "min", "minutes", "hours"))
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
    random = world.random
    topic = random.choice((noun, thing, person, noun, thing, invented))(random)
    words = world.say(RECALL if random.random() < 0.65 else RECALL_OWN, topic=topic)
    if random.random() < 0.2:
        return [
            words,
            call("recall", query=topic),
            Result(
                random.choice(
                    (
                        "nothing found",
                        "No results.",
                        "no notes match",
                        "Nothing found.",
                        "(nothing)",
                    )
                )
            ),
            Answer(f"I found nothing about {topic}."),
        ]
    found = random.choice(
        (
            f"my {topic} is {noun(random)}",
            fact(random),
            f"{topic}: {thing(random)}",
            f"the {topic} is {number(random)}",
        )
    )
    day = f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    result = random.choice(
        (
            f"- {found} ({day})",
            f"{day} {found}",
            f"{day}: {found}",
            f"note {number(random, 1)}: {found}",
            found,
            f"notes:\n- {found} ({day})",
            f"{day} user: {found}",
        )
    )
    return [
        words,
        call("recall", query=topic),
        Result(result),
        Answer(f"I found: {result.split(chr(10))[-1].removeprefix('- ')}"),
    ]


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


def remind(world: World) -> Exchange:
    random = world.random
    when, task = (once if random.random() < 0.75 else often)(random), errand(random)
    return [
        world.say(REMIND, when=when, errand=task),
        call("schedule", when=when, task=task, kind="remind"),
        *planned(random, when, task),
    ]


def summary(world: World) -> Exchange:
    random = world.random
    when, task = (often if random.random() < 0.8 else once)(random), repo(random)
    return [
        world.say(SUMMARY, when=when, repo=task),
        call("schedule", when=when, task=task, kind="summary"),
        *planned(random, when, task),
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
    return [
        words,
        call("schedule", when=when, task=f"{verb} {job}", kind="task"),
        *planned(random, when, job),
    ]


def planned(random: Random, when: str, task: str) -> Exchange:
    stamp = f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02} {random.randint(0, 23):02}:{random.randint(0, 59):02}"
    job = number(random, random.choice((1, 1, 2)))
    day = random.choice("Mon Tue Wed Thu Fri Sat Sun".split())
    result = random.choice(
        (
            f"Job {job}: {task}, next at {stamp}.",
            f"Scheduled job {job}, next {day} {stamp}.",
            f"job {job} at {stamp}",
            f"Planned as job {job}: {task}, {when}; next: {day} {stamp}.",
            f"Planned as job {job}: {task}, {day} {stamp}.",
            f"Scheduled for {day} {stamp} (job {job}).",
            f"Scheduled: {when}. Next: {stamp}",
            f"Job {job} is planned, first at {stamp}.",
            f"{task} - {stamp}",
            f"Scheduled {job}: {task} ({when}), next {day} {stamp}.",
        )
    )
    if random.random() < 0.06:
        return [
            Result(f"Error: cannot understand the time {when!r}"),
            Answer("That time was not understood. When exactly?"),
        ]
    return [Result(result), Answer(f"Done: {result}")]
