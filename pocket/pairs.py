"""Old and new texts of edits."""

from collections.abc import Callable
from random import Random

from pocket.details import address, clock, flag, version
from pocket.grammar import expand
from pocket.lexicon import KEYS, MONTHS, TAILS, TEXTS, WEEKDAYS
from pocket.sentences import VALUES, Fresh, Maker, phrase, value
from pocket.words import (
    adjective,
    folder,
    invented,
    noun,
    number,
    person,
    place,
    repo,
    stem,
    surname,
    thing,
)


def pair(random: Random) -> tuple[str, str]:
    """An old and a new text for an edit, never equal, some with the same beginning or end."""
    related = random.random() < 0.5
    while True:
        old, new = random.choice(_RELATED)(random) if related else _unlike(random)
        if old != new:
            return (old, new) if random.random() < 0.6 else (new, old)


def _unlike(random: Random) -> tuple[str, str]:
    """Two texts that have nothing to do with each other, mostly of one kind."""
    kinds: tuple[Maker, ...] = (noun, adjective, invented, number, value, thing, person, place)
    one = random.choice((*kinds, phrase))
    other = one if random.random() < 0.5 else random.choice((*kinds, phrase))
    return one(random), other(random)


def _same_key(random: Random) -> tuple[str, str]:
    """A setting with two values: port=80, port=8080."""
    make = random.choice((*VALUES, number, number, flag))
    key = random.choice((random.choice(KEYS), noun(random), invented(random)))
    sign = random.choice(("=", "=", " = ", ": ", " "))
    return f"{key}{sign}{make(random)}", f"{key}{sign}{make(random)}"


def _switched(random: Random) -> tuple[str, str]:
    """A setting on and off: debug=True, debug=False."""
    states = random.choice(
        ("True False", "true false", "on off", "yes no", "0 1", "enabled disabled")
    )
    key, sign = (
        random.choice((random.choice(KEYS), noun(random))),
        random.choice(("=", " = ", ": ")),
    )
    one, other = states.split()
    return f"{key}{sign}{one}", f"{key}{sign}{other}"


def _next_version(random: Random) -> tuple[str, str]:
    """One part of a version or of an address raised."""
    text = random.choice((version, version, address))(random)
    head, dot, last = text.rpartition(".")
    last = last.split(":")[0]
    lead = random.choice(("", "", "version ", f"{noun(random)} ", f"{noun(random)}=="))
    return f"{lead}{head}{dot}{last}", f"{lead}{head}{dot}{int(last) + random.randint(1, 3)}"


def _near_number(random: Random) -> tuple[str, str]:
    """Two numbers that share digits, bare or with what they count."""
    old = number(random, random.choice((2, 3, 3, 4)))
    at = random.randrange(len(old))
    new = old[:at] + random.choice("123456789") + old[at + 1 :]
    if random.random() < 0.35:
        whole = random.choice(("0.", "0.", "1.", f"{number(random, 1)}."))
        old, new = whole + old, whole + random.choice((new, number(random, len(old))))
    form = random.choice(("{}", "{}", "{}0", "1{}", "{} euros", "{}px", "{}s", "room {}", "{}%"))
    return form.format(old), form.format(new)


def _longer(random: Random) -> tuple[str, str]:
    """A word and the same word with more: lamp, lamps, lamp2, lampshop, http, https."""
    word = random.choice((noun, repo, stem, invented))(random)
    suffixes = ("s", "2", "3", "er", "_old", "-v2", "ed", "s3", "x", random.choice(TAILS))
    lead = random.choice(("", "", "", "the ", "import ", "http://"))
    if lead == "http://":
        return f"http://{word}", f"https://{word}"
    return f"{lead}{word}", f"{lead}{word}{random.choice(suffixes)}"


def _one_word(random: Random) -> tuple[str, str]:
    """A text and the same with another first or last word."""
    make = random.choice((noun, adjective, person, number, place, invented))
    forms = (
        "{} $noun",
        "$noun {}",
        "the $adj {}",
        "$adj $noun {}",
        "my $noun is {}",
        "{} in the $noun",
        "see {}",
        "$verb the {}",
        "hello {}",
        "from {} to $place",
        "$owner {}",
    )
    slots = Fresh(random)
    before, after = (expand(part, random, slots) for part in random.choice(forms).split("{}"))
    old, new = (f"{before} {make(random)} {after}".strip() for _ in range(2))
    return old, new


def _salutation(random: Random) -> tuple[str, str]:
    """The same person or nobody, greeted otherwise."""
    openings = "Dear|Hi|Hello|Dear Mr|Dear Mrs|Good morning|Good evening|Hey|Welcome".split("|")
    one, other = random.sample(openings, 2)
    name = surname(random)
    who, whom = random.sample(
        ("Sir", "Madam", "team", "all", "friends", "customer", "colleagues"), 2
    )
    lead = random.choice(("Dear", "Hello", "Good morning", "Welcome"))
    return random.choice(
        ((f"{one} {name}", f"{other} {name}"), (f"{lead} {who}", f"{lead} {whom}"))
    )


def _calendar(random: Random) -> tuple[str, str]:
    """Two weekdays, months or times in the same words."""
    form = random.choice(("{}", "{}", "on {}", "{} evening", "closed {}", "until {}", "{} 12"))
    if random.random() < 0.25:
        return form.format(clock(random)), form.format(clock(random))
    one, other = random.sample(random.choice((WEEKDAYS, MONTHS)), 2)
    change = random.choice((str, str, str.lower))
    return form.format(change(one)), form.format(change(other))


def _typo(random: Random) -> tuple[str, str]:
    """A word mistyped, and as it should be."""
    word = random.choice(
        (noun(random), adjective(random), "the", "their", "receive", "because", "and")
    )
    at = random.randrange(len(word) - 1)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    wrong = random.choice(
        (swapped, swapped, word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:])
    )
    return wrong, random.choice((word, word, word.replace("-", "_")))


def _dressed(random: Random) -> tuple[str, str]:
    """The same word in capitals, or a file of another kind."""
    word, name = random.choice((noun, thing, phrase))(random), stem(random)
    one, other = random.sample(TEXTS, 2)
    return random.choice(
        (
            (word, word.upper()),
            (word, word[0].upper() + word[1:]),
            (f"{name}.{one}", f"{name}.{other}"),
            (f"{folder(random)}/{name}.{one}", f"{folder(random)}/{name}.{one}"),
            (f"# {word}", f"## {word}"),
            (word, f"{word} {random.choice(('done', 'too', 'again', noun(random)))}"),
        )
    )


_RELATED: tuple[Callable[[Random], tuple[str, str]], ...] = (
    _same_key,
    _same_key,
    _switched,
    _next_version,
    _near_number,
    _near_number,
    _longer,
    _longer,
    _one_word,
    _one_word,
    _salutation,
    _calendar,
    _typo,
    _dressed,
)
