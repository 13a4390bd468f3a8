"""How people write: politeness, asides, capitals, full stops, slips of the finger."""

from collections.abc import Sequence
from random import Random

from pocket.grammar import expand
from pocket.words import invented

BEFORE = (
    "{please|pls|hey,|hi,|ok,|so,|now|well,|hello,|hey Voltaire,|Voltaire,|quick question:|one more thing:|next:|right,|and|also,|good, now|alright,|great,|thanks, now|just|oh,|sorry,|excuse me,|tell me,|yo|um,|listen,|dear bot,|first,|a question:|by the way,}",
    "{could you|can you|would you|will you|can you please|could you please|would you please|would you mind to|I want you to|I'd like you to|I need you to|you should|go and|please go and|kindly|do me a favour and|be so kind and|may I ask you to|let's|I would ask you to|it's time to|try to}",
    "{I wonder,|I was wondering,|before I leave,|while you are at it,|when you have a moment,|for my records,|my boss asks:|I am curious:|I forgot,|if possible,|real quick,|as usual,|for once,|since you're here,|hmm,|I'm in a hurry:|I have a question,|for the report,|before lunch,|just to be sure,}",
)
AFTER = (
    "{please|pls|thanks|for me|now|right now|if you can|thank you|quickly|okay|please and thank you|real quick|if possible|then|at once|mate|my friend|Voltaire|when you can|would you|can you|today|, I need it|, I'm curious|, it's urgent|asap|, just checking|, no hurry|, if you don't mind|, that would be great|, be quick}",
)
_STARTS_AS_ORDER = frozenset(
    "show list read open print write create make put store save replace change edit search grep look find send give check tell commit run execute remind set add append delete "
    "remove remember note schedule display calculate compute get count summarise summarize translate play call book draw explain turn report recall keep scan locate attach upload".split()
)


UNQUOTED = 0.45  # of the wishes that quote what a call copies


def unquoted(words: str, random: Random, kept: Sequence[str]) -> str:
    """Often without quotes around what is copied: few people type them on a phone."""
    if random.random() > UNQUOTED:
        return words
    for text in kept:
        words = words.replace(f"'{text}'", text).replace(f'"{text}"', text)
    return words


def spoken(words: str, random: Random, kept: Sequence[str] = ()) -> str:
    """The same wish as somebody might type it. What is `kept` (copied by a call) stays as it is."""
    opens, closes = words.startswith(tuple(kept)), words.endswith(tuple(kept))
    if random.random() < 0.1:
        words = _slip(words, random, kept)
    if random.random() < 0.2 and "\n" not in words:
        words = _typed(words, random, kept)
    if random.random() < 0.12 and not closes:
        words = _after(words, random)
    if random.random() < 0.22:
        words, opens = _before(words, random), False
    if random.random() < 0.04:
        words, opens = _aside(words, random), False
    if random.random() < 0.5 and not opens:
        words = words[:1].upper() + words[1:]
    return words if "\n" in words else words + _stop(words, random)


SYNONYMS = {
    "show": "display present reveal print see".split(),
    "tell": "inform show give".split(),
    "check": "verify examine inspect review control".split(),
    "find": "locate discover seek spot".split(),
    "files": "documents items things".split(),
    "file": "document".split(),
    "folder": "directory dir".split(),
    "machine": "computer host box system PC server rig".split(),
    "free": "available unused vacant spare".split(),
    "disk": "drive disc storage volume".split(),
    "replace": "substitute swap exchange change".split(),
    "change": "modify alter replace turn".split(),
    "write": "put save store enter".split(),
    "create": "make produce generate add".split(),
    "delete": "remove erase drop".split(),
    "search": "look hunt scan".split(),
    "contain": "include hold have mention".split(),
    "send": "deliver ship pass forward".split(),
    "repository": "repo project".split(),
    "repo": "repository project".split(),
    "changes": "modifications edits differences".split(),
    "changed": "modified edited altered".split(),
    "remember": "memorise retain store".split(),
    "remind": "alert notify prompt".split(),
    "summary": "digest recap overview report".split(),
    "message": "text note comment title".split(),
    "big": "large huge".split(),
    "hot": "warm".split(),
    "much": "many".split(),
    "current": "present actual".split(),
    "give": "get bring hand".split(),
    "list": "enumerate name".split(),
    "running": "working going operating".split(),
    "calculate": "compute determine".split(),
    "now": "currently presently".split(),
    "commit": "save record".split(),
    "help": "assist support".split(),
}
_DROPPED = frozenset("the a an is are of do to please that".split())


def reworded(words: str, random: Random, kept: Sequence[str]) -> str:
    """Here and there a synonym, a missing article: what no template thought of."""
    if "\n" in words or random.random() < 0.45:
        return words
    spans = [span for span in kept if span in words]
    return " ".join(word for part in words.split(" ") if (word := _other(part, random, spans)))


def _other(word: str, random: Random, spans: Sequence[str]) -> str:
    if _copied(word, spans):
        return word
    if word in SYNONYMS and random.random() < 0.22:
        return random.choice(SYNONYMS[word])
    return "" if word in _DROPPED and random.random() < 0.05 else word


def _copied(word: str, spans: Sequence[str]) -> bool:
    """Whether a call copies some of the word."""
    return any(word.strip("'\".,:?!()") in span or span in word for span in spans)


def _after(words: str, random: Random) -> str:
    rest = expand(random.choice(AFTER), random)
    return f"{words.rstrip('?.!')}{'' if rest.startswith(',') else ' '}{rest}"


def _before(words: str, random: Random) -> str:
    first = words.split(" ", 1)[0].lower()
    forms = BEFORE if first in _STARTS_AS_ORDER else (BEFORE[0], BEFORE[2])
    return f"{expand(random.choice(forms), random)} {words}"


def _aside(words: str, random: Random) -> str:
    """An unknown word or two that change nothing."""
    aside = random.choice(
        (
            f"{invented(random).capitalize()},",
            f"{invented(random)} {invented(random)}:",
            "uh",
            f"hey {invented(random)},",
        )
    )
    return f"{aside} {words}"


def _slip(words: str, random: Random, kept: Sequence[str]) -> str:
    """One of the first words mistyped, unless a call copies it."""
    parts = words.split(" ")
    at = random.randrange(min(3, len(parts)))
    word = parts[at]
    if len(word) < 4 or not word.isalpha() or any(word in text for text in kept):
        return words
    i = random.randrange(1, len(word) - 1)
    parts[at] = random.choice(
        (
            word[:i] + word[i + 1 :],
            word[:i] + word[i] + word[i:],
            word[:i] + word[i + 1] + word[i] + word[i + 2 :],
        )
    )
    return " ".join(parts)


SHORT = {
    "you": ("u",),
    "your": ("ur",),
    "are": ("r",),
    "please": ("pls", "plz"),
    "with": ("w/",),
    "and": ("&",),
    "message": ("msg",),
    "about": ("abt",),
    "because": ("cuz", "coz"),
    "minutes": ("mins",),
    "pictures": ("pics",),
    "repository": ("repo",),
}


def _typed(words: str, random: Random, kept: Sequence[str]) -> str:
    """As thumbs type it: small letters, no apostrophes, some words cut short."""
    spans = [span for span in kept if span in words]
    return " ".join(_thumbed(word, random, spans) for word in words.split(" "))


def _thumbed(word: str, random: Random, spans: Sequence[str]) -> str:
    if _copied(word, spans):
        return word
    small = word.lower().replace("'", "") if word.count("'") == 1 else word.lower()
    return random.choice(SHORT.get(small, (small,))) if random.random() < 0.3 else small


def _stop(words: str, random: Random) -> str:
    asks = words.split(" ")[0].lower() in (
        "what",
        "what's",
        "how",
        "is",
        "are",
        "which",
        "who",
        "where",
        "when",
        "do",
        "does",
        "did",
        "can",
        "could",
        "will",
        "would",
        "have",
    )
    roll = random.random()
    if asks:
        return "?" if roll < 0.6 else ""
    return "." if roll < 0.12 else "!" if roll < 0.15 else "?" if roll < 0.18 else ""
