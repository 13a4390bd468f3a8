"""Words, names, numbers and paths that vary so much that only copying explains them."""

import re
from random import Random

from pocket.lexicon import (
    ADJECTIVES,
    CODAS,
    FOLDERS,
    HEADS,
    IRREGULAR,
    MASS,
    MONTHS,
    NOUNS,
    ONSETS,
    PEOPLE,
    PLACES,
    RELATIVES,
    REPOS,
    STEMS,
    SURNAMES,
    TAILS,
    TEXTS,
    TITLES,
    VOWELS,
)


def invented(random: Random, syllables: int = 0) -> str:
    """A pronounceable word that is in no list."""
    if random.random() < 0.5:
        return blend(random)
    count = syllables or random.choice((1, 2, 2, 3))
    parts = [
        random.choice(ONSETS) + random.choice(VOWELS) + random.choice(CODAS) for _ in range(count)
    ]
    return "".join(parts)


_BLENDED = [word.lower() for word in (*NOUNS, *ADJECTIVES, *PEOPLE, *PLACES) if word.isalpha()]


def blend(random: Random) -> str:
    """The beginning of one word and the end of another: it falls into the pieces of words not in the lists."""
    first, last = random.choice(_BLENDED), random.choice(_BLENDED)
    return first[: random.randint(2, 5)] + last[-random.randint(2, 5) :]


def scrap(random: Random) -> str:
    """Letters without sense, such as an identifier or a typing error."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    text = "".join(random.choice(letters) for _ in range(random.randint(2, 7)))
    return random.choice((text, text, text.upper(), text.capitalize()))


def noun(random: Random) -> str:
    shape = random.random()
    if shape < 0.7:
        return random.choice(NOUNS)
    return compound(random, NOUNS) if shape < 0.78 else invented(random)


def compound(random: Random, words: list[str], signs: tuple[str, ...] = ("", "", "", "-")) -> str:
    """Two words grown together: teashop, photo-box."""
    short = [word for word in random.choices(words, k=8) if len(word) < 7] or ["tea"]
    first = random.choice((random.choice(HEADS), short[0]))
    last = random.choice((random.choice(TAILS), short[-1]))
    return first + random.choice(signs) + last


def adjective(random: Random) -> str:
    return random.choice(ADJECTIVES) if random.random() < 0.9 else invented(random)


def person(random: Random) -> str:
    shape = random.random()
    if shape < 0.03:
        return random.choice(RELATIVES)
    if shape < 0.07:
        return f"{random.choice(TITLES)} {surname(random)}"
    first = random.choice(PEOPLE) if random.random() < 0.7 else invented(random, 2).capitalize()
    return f"{first} {surname(random)}" if random.random() < 0.15 else first


def surname(random: Random) -> str:
    return random.choice(SURNAMES) if random.random() < 0.6 else invented(random, 2).capitalize()


def place(random: Random) -> str:
    return random.choice(PLACES) if random.random() < 0.6 else invented(random, 2).capitalize()


def number(random: Random, digits: int = 0) -> str:
    size = digits or random.choice((1, 2, 2, 3, 3, 4, 5))
    return str(random.randint(10 ** (size - 1) if size > 1 else 0, 10**size - 1))


def decimal(random: Random) -> str:
    return f"{number(random)}.{random.randint(0, 10 ** random.choice((1, 1, 2)) - 1)}"


def _joined(random: Random) -> str:
    """A stem of two words: plan_lamp, todo-old, oldPlan, homelist, MyNotes."""
    first, last = random.choice(STEMS), random.choice((noun(random), random.choice(STEMS)))
    return random.choice(
        (
            compound(random, STEMS, ("", "", "-", "_")),
            f"{first}{last}",
            f"{first}{last.capitalize()}",
            f"{first}{last.capitalize()}",
            f"{first.capitalize()}{last.capitalize()}",
            f"{random.choice(('my', 'new', 'old', 'the', 'final'))}{random.choice('_-')}{last}",
        )
    )


def _dated(random: Random) -> str:
    """A stem with a day, an edition or a running number."""
    first = random.choice(STEMS)
    day = f"{random.randint(2019, 2030)}-{random.randint(1, 12):02}"
    return random.choice(
        (
            f"{first}_v{random.randint(1, 12)}",
            f"{first}-{day}",
            f"{day}-{random.randint(1, 28):02}",
            f"{random.randint(1, 30):02}_{first}",
            f"IMG_{number(random, 4)}",
            f"{first}-{random.choice(MONTHS).lower()}",
            f"{random.choice(PEOPLE).lower()}s-{first}",
            f"{first}_{random.choice(('final', 'copy', 'old', 'new', 'backup', 'draft'))}",
        )
    )


def stem(random: Random) -> str:
    shape = random.random()
    if shape < 0.4:
        return random.choice(STEMS)
    if shape < 0.54:
        return random.choice(NOUNS)
    if shape < 0.66:
        return invented(random)
    if shape < 0.8:
        return random.choice("_-").join(
            (random.choice(STEMS), random.choice((noun(random), number(random))))
        )
    if shape < 0.88:
        return _joined(random)
    if shape < 0.92:
        return _dated(random)
    if shape < 0.96:
        return random.choice(STEMS) + number(random, random.choice((1, 2, 4)))
    return random.choice(
        (random.choice(STEMS).upper(), random.choice(STEMS).capitalize(), scrap(random))
    )


def filename(random: Random, extensions: tuple[str, ...] | list[str] = ()) -> str:
    return f"{stem(random)}.{random.choice(extensions or TEXTS)}"


def folder(random: Random) -> str:
    if random.random() < 0.7:
        return random.choice(FOLDERS)
    return random.choice(
        (
            noun(random),
            invented(random),
            f"{random.choice(FOLDERS)}{number(random, 1)}",
            compound(random, FOLDERS, ("", "-", "_")),
        )
    )


def path(random: Random, extensions: tuple[str, ...] | list[str] = ()) -> str:
    name = filename(random, extensions)
    shape = random.random()
    if shape < 0.65:
        return name
    if shape < 0.85:
        return f"{folder(random)}/{name}"
    if shape < 0.9:
        return f"/workspace/{name}"
    if shape < 0.95:
        return f"{folder(random)}/{folder(random)}/{name}"
    return f"/repos/{repo(random)}/{name}"


def named_after(random: Random, name: str, text: str) -> str:
    """A path, now and then called by a word of the text that it is said with.

    heron.txt with "the heron left": one word back does not tell what to copy next.
    """
    words = re.findall(r"[A-Za-z]{3,}", text)
    if not words or random.random() > 0.16:
        return name
    where, slash, file = name.rpartition("/")
    word = random.choice(words).lower()
    part = random.choice((word, word, word, f"{word}s", f"{word}_{noun(random)}"))
    return f"{where}{slash}{part}.{file.rpartition('.')[2]}"


def repo(random: Random) -> str:
    shape = random.random()
    if shape < 0.55:
        return random.choice(REPOS)
    if shape < 0.67:
        return invented(random)
    if shape < 0.79:
        return compound(random, REPOS, ("", "", "-", "_"))
    if shape < 0.9:
        return f"{random.choice(REPOS)}-{random.choice((noun(random), random.choice(REPOS)))}"
    return random.choice(
        (
            noun(random),
            f"{noun(random)}_{random.choice(REPOS)}",
            f"{invented(random)}{number(random, 1)}",
            f"{random.choice(PEOPLE).lower()}s-{random.choice(REPOS)}",
            f"{random.choice(REPOS)}{random.choice(('2', '3', '-v2', '-old', '-js', '-py'))}",
        )
    )


def thing(random: Random) -> str:
    """A noun phrase without an article."""
    shape = random.random()
    if shape < 0.5:
        return noun(random)
    if shape < 0.82:
        return f"{adjective(random)} {noun(random)}"
    if shape < 0.85:
        return f"{adjective(random)} {plural(noun(random))}"
    return f"{noun(random)} {noun(random)}"


def plural(word: str) -> str:
    """More than one of a noun."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word in MASS or word.endswith("s"):
        return word
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("ch", "sh", "x", "z")) else f"{word}s"


def article(text: str) -> str:
    """The text behind its article, unless it is plural or has none."""
    last = text.split(" ")[-1]
    if last in MASS or last.endswith("s"):
        return text
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"
