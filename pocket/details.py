"""What stands in notes and errands: owners, places, times, codes, amounts."""

from random import Random

from pocket.lexicon import MONTHS, PEOPLE, REPOS, ROLES, WEEKDAYS
from pocket.words import (
    article,
    filename,
    folder,
    invented,
    noun,
    number,
    person,
    place,
    plural,
    repo,
    surname,
    thing,
)


def owned(random: Random) -> str:
    """A thing with its article or owner."""
    owner = random.choice(("the", "the", "the", "my", "my", "our", ""))
    name = thing(random) if random.random() < 0.5 else noun(random)
    if owner:
        return f"{owner} {name}"
    return random.choice((f"{person(random)}'s {name}", article(name)))


def name(random: Random) -> str:
    """What a thing, an animal or a shop may be called."""
    name = random.choice((person, invented, noun))(random)
    return name[0].upper() + name[1:]


def somebody(random: Random) -> str:
    """Somebody: mostly a name, else a relation or an office."""
    if random.random() < 0.7:
        return person(random)
    return f"{random.choice(('the', 'my', 'my', 'our'))} {random.choice(ROLES)}"


def whereabouts(random: Random) -> str:
    """A place to fetch something from or to bring it to."""
    town = random.choice((place(random), f"the {noun(random)} in {place(random)}"))
    return random.choice((f"the {noun(random)}", f"the {thing(random)}", somebody(random), town))


def spot(random: Random) -> str:
    """A numbered place: room 14, platform 3, 27 Oak Street."""
    n, letter = random.randint(1, 480), random.choice("ABCDEFGH")
    kind = (
        "room floor seat gate platform table locker door desk shelf box aisle row track hall exit"
    )
    street = random.choice(("street", "road", "lane", "avenue", "square"))
    return random.choice(
        (
            f"{random.choice(kind.split())} {n}",
            f"{random.choice(kind.split())} {random.choice((f'{letter}{n}', f'{n}{letter}'))}",
            f"{n} {noun(random)} {street}",
            f"{n} {surname(random)} {street.capitalize()}",
        )
    )


def digits(random: Random) -> str:
    return "".join(random.choice("0123456789") for _ in range(random.randint(4, 8)))


def code(random: Random) -> str:
    """What opens a door or marks a thing: digits, with letters now and then."""
    letters = [random.choice("ABCDEFGHJKLMNPRSTUVWXYZ") for _ in range(4)]
    plate = f"{letters[0]}{letters[1]}-{number(random, 2)}-{letters[2]}{letters[3]}"
    return random.choice(
        (
            digits(random),
            digits(random),
            digits(random),
            plate,
            f"{letters[0]}{letters[1]}{number(random, 4)}",
            f"{letters[0]}-{number(random, 3)}-{number(random, 2)}",
            f"{number(random, 4)}{letters[0]}",
            f"{noun(random)}{number(random, 2)}",
            f"{letters[0].lower()}{number(random, 1)}{letters[1].lower()}{number(random, 2)}",
        )
    )


def clock(random: Random) -> str:
    """A time of day."""
    hour, minute = random.randint(5, 23), random.choice((0, 5, 10, 15, 20, 30, 40, 45, 50, 55))
    small = hour % 12 or 12
    half = "am" if hour < 12 else "pm"
    return random.choice(
        (
            f"{hour}:{minute:02}",
            f"{hour}:{minute:02}",
            f"{hour:02}:{random.randint(0, 59):02}",
            f"{small} {half}",
            f"{small}{half}",
            f"{small}:{minute:02}",
        )
    )


def hour(random: Random) -> str:
    """A time of day, now and then in words."""
    if random.random() < 0.8:
        return clock(random)
    return f"{random.choice(('half past', 'quarter to', 'quarter past'))} {random.randint(1, 12)}"


def date(random: Random) -> str:
    day, month = random.randint(1, 30), random.choice(MONTHS)
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day not in (11, 12, 13) else 0, "th")
    return random.choice(
        (
            f"{day} {month}",
            f"{month} {day}",
            f"the {day}{suffix} of {month}",
            f"{month} {day}{suffix}",
        )
    )


def year(random: Random) -> str:
    return str(random.randint(1938, 2038))


def weekday(random: Random) -> str:
    return random.choice((str, str.lower))(random.choice(WEEKDAYS))


def money(random: Random) -> str:
    """A price or an amount."""
    sum_ = number(random, random.choice((1, 2, 2, 3, 4)))
    cents = f"{sum_}.{number(random, 2)}"
    unit = random.choice(("euros", "dollars", "pounds", "francs", "EUR"))
    return random.choice(
        (f"{sum_} {unit}", f"{sum_} {unit}", f"${sum_}", f"{cents} {unit}", f"${cents}")
    )


def phone(random: Random) -> str:
    return random.choice(
        (
            f"0{number(random, 3)} {number(random, 3)} {number(random, 3)}",
            f"555 0{number(random, 3)}",
            f"555-0{number(random, 3)}",
            f"06{number(random, 8)}",
            f"+{number(random, 2)} {number(random, 3)} {number(random, 4)}",
        )
    )


def version(random: Random) -> str:
    parts = [random.choice((0, 1, 2, 3, 4, 5, 10, 12, random.randint(0, 40))) for _ in range(3)]
    text = ".".join(str(part) for part in parts[: random.choice((2, 3, 3, 3))])
    return random.choice((text, text, text, f"v{text}"))


def address(random: Random) -> str:
    net = random.choice(
        ("10.0", "192.168", "172.16", f"{random.randint(1, 220)}.{random.randint(0, 250)}")
    )
    text = f"{net}.{random.choice((0, 1, random.randint(0, 255)))}.{random.randint(1, 254)}"
    return random.choice((text, text, text, f"{text}:{number(random, 4)}"))


def quantity(random: Random) -> str:
    """A number with its unit: 30s, 10px, 5MB, 80%."""
    units = "s ms px MB GB KB kg km m cm % em min h pt ml K".split()
    return f"{number(random, random.choice((1, 2, 2, 3)))}{random.choice(units)}"


def flag(random: Random) -> str:
    return random.choice(
        "true false yes no on off none True False None null auto enabled never".split()
    )


def email(random: Random) -> str:
    name = random.choice((random.choice(PEOPLE).lower(), invented(random), random.choice(REPOS)))
    more = random.choice(("", "", f".{invented(random)}", number(random, 2)))
    return f"{name}{more}@{random.choice(('', '', 'mail.', f'{invented(random)}.'))}example.org"


def url(random: Random) -> str:
    host = random.choice(
        (f"{repo(random)}.example.org", "localhost", f"{invented(random)}.example.com")
    )
    tail = random.choice(
        ("", f":{number(random, 4)}", f"/{folder(random)}", f"/{filename(random)}")
    )
    return f"{random.choice(('http', 'https', 'https'))}://{host}{tail}"


def enumeration(random: Random) -> str:
    """Some things with commas between them."""
    make = random.choice((noun, noun, thing, person, lambda r: plural(noun(r)), place, number))
    items = [make(random) for _ in range(random.randint(2, 5))]
    if random.random() < 0.5:
        return ", ".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
