"""Sums, which Python works out: one form of call for all of them, so that there is one to learn."""

from random import Random

from pocket.dialogue import Answer, Exchange, Result, World, shell
from pocket.grammar import expand
from pocket.wordings.sums import DOWN, EXPRESSIONS, FRAMES, ORDERS, STORIES, UP
from pocket.words import decimal, noun, number, person

UNITS = (
    ("minutes", "seconds", 60),
    ("hours", "minutes", 60),
    ("hours", "seconds", 3600),
    ("days", "hours", 24),
    ("days", "minutes", 1440),
    ("days", "seconds", 86400),
    ("weeks", "days", 7),
    ("weeks", "hours", 168),
    ("years", "months", 12),
    ("years", "weeks", 52),
    ("years", "days", 365),
)
COINS = "euros dollars pounds francs cents kroner euro yen bucks".split()
REPEATED = 0.08  # share of sums in which a figure stands more than once
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SHARES = tuple(share for share, *_ in EXPRESSIONS)


def sums(world: World) -> Exchange:
    random = world.random
    said, formula = random.choices((_expression, _order, _story, _units), (62, 10, 20, 8))[0](
        random
    )
    output = _output(random)
    return [
        world.say(("$sum",), sum=said),
        shell(f"python3 -c 'print({formula})'"),
        Result(random.choice((output, output, output, f"{output}\nexit code: 0"))),
        Answer(f"{formula} = {output}"),
    ]


def _expression(random: Random) -> tuple[str, str]:
    _, formula, spoken = random.choices(EXPRESSIONS, _SHARES)[0]
    figures = _figures(random, fractions=0.0 if "%" in formula else 0.2)
    said = expand(spoken, random, {name: _aloud(random, text) for name, text in figures.items()})
    frame = "$sum" if random.random() < 0.12 else random.choice(FRAMES)
    return expand(frame, random, {"sum": said}), expand(formula, random, figures)


def _order(random: Random) -> tuple[str, str]:
    formula, wording = random.choice(ORDERS)
    figures = _figures(random, fractions=0.1)
    slots = {name: _aloud(random, text) for name, text in figures.items()}
    return expand(wording, random, slots), expand(formula, random, figures)


def _story(random: Random) -> tuple[str, str]:
    formula, wording = random.choice(STORIES)
    figures = _figures(random, fractions=0.15)
    plural = f"{noun(random).removesuffix('s')}s"
    coins = random.choice(COINS)
    slots = {
        **{name: _aloud(random, text) for name, text in figures.items()},
        "nouns": plural,
        "coins": coins,
        "things": random.choice((plural, coins)),
        "noun": noun(random),
        "other": noun(random),
        "person": person(random),
    }
    return expand(wording, random, slots), expand(formula, random, figures)


def _units(random: Random) -> tuple[str, str]:
    large, small, factor = random.choice(UNITS)
    a = number(random)
    if random.random() < 0.3:
        return expand(UP, random, {"a": a, "large": large, "small": small}), f"{a} / {factor}"
    a = "1" if random.random() < 0.3 else a
    one = random.choice(("a", "one")) + f" {large[:-1]}"
    count = one.replace("a h", "an h") if a == "1" else f"{_aloud(random, a)} {large}"
    return expand(DOWN, random, {"count": count, "small": small}), f"{a} * {factor}"


def _figures(random: Random, fractions: float) -> dict[str, str]:
    figures = {name: _figure(random, fractions) for name in "abcd"}
    if random.random() < REPEATED:
        for name in random.choice(("b", "c", "bc", "bcd")):
            figures[name] = figures["a"]
    figures["k"] = str(random.randint(2, 12))
    figures["p"] = str(random.randint(1, 100)) if random.random() < 0.85 else decimal(random)
    if figures["b"] == "0":
        figures["b"] = "7"
    if figures["c"] == "0":
        figures["c"] = "8"
    return figures


def _figure(random: Random, fractions: float) -> str:
    if random.random() < fractions:
        return decimal(random)
    return number(random, random.choice((1, 2, 2, 2, 3, 3, 3, 4, 4, 5)))


def _aloud(random: Random, figure: str) -> str:
    """A small number in words, now and then."""
    if "." in figure or int(figure) > 99 or random.random() > 0.18:
        return figure
    count = int(figure)
    if count < 20:
        return _ONES[count]
    tens, ones = _TENS[count // 10 - 2], count % 10
    return f"{tens}-{_ONES[ones]}" if ones else tens


def _output(random: Random) -> str:
    shape = random.choice(
        (
            number,
            decimal,
            lambda r: number(r, r.randint(1, 9)),
            lambda r: number(r, r.randint(2, 5)),
            lambda r: f"{number(r)}.{number(r, r.randint(1, 4))}",
            lambda r: "-" + number(r),
        )
    )
    return shape(random)
