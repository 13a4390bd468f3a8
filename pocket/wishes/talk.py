"""Small talk, and what is beyond a demonstration model."""

from random import Random

from pocket.dialogue import BEYOND, Answer, Exchange, World
from pocket.grammar import expand
from pocket.sentences import errand
from pocket.wordings.talk import ABROAD, BYE, CAN, DANGEROUS, HELLO, HOW, NEAR, THANKS, TOPICS, WHO
from pocket.words import adjective, noun, number, path, person, place, thing

SMALL = (
    (HELLO, "Hello! What can I do for you?"),
    (HOW, "I am fine, thank you. What can I do for you?"),
    (WHO, "I am Voltaire, your personal agent, running on Pocket, a tiny demonstration model."),
    (
        CAN,
        "I can look at this machine (disk, memory, uptime, date), list, read, write, edit, search and send files, handle git repositories, remember notes, schedule reminders and do small sums.",
    ),
    (THANKS, "You are welcome!"),
    (BYE, "Goodbye!"),
)
_SMALL_WEIGHTS = (4, 1, 4, 4, 3, 2)


def small(world: World) -> Exchange:
    wordings, answer = world.random.choices(SMALL, _SMALL_WEIGHTS)[0]
    return [world.say(wordings), Answer(answer)]


def beyond(world: World) -> Exchange:
    wordings = world.random.choices((DANGEROUS, ABROAD, NEAR), (22, 63, 15))[0]
    return [world.say(wordings, **_slots(world.random)), Answer(BEYOND)]


def borrowed(random: Random) -> str:
    """An errand that would be beyond the model, were it asked to run it itself: book a flight."""
    while True:
        text = expand(random.choice(ABROAD), random, _slots(random))
        first, *more = text.split(" ")
        if first in _DEEDS and 0 < len(more) < 8 and not {"me", "us"} & set(more):
            return text


_DEEDS = frozenset(
    "book reserve order buy get call phone text email message write draft play start turn switch open close lock "
    "translate draw paint print search google download visit check learn solve plan compose".split()
)


def _slots(random: Random) -> dict[str, str]:
    return {
        "thing": thing(random),
        "noun": noun(random),
        "nouns": f"{noun(random)}s",
        "errand": errand(random),
        "place": place(random),
        "person": person(random),
        "number": number(random),
        "num": number(random, 1),
        "adj": adjective(random),
        "other": noun(random),
        "topic": random.choice(TOPICS),
        "path": path(random),
    }
