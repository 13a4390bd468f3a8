"""Talk that needs no tool."""

from collections.abc import Iterator

from backend.pocket.evaluation.case import Case, Wanted, case
from backend.pocket.evaluation.checks import chats, names_abilities, says

GREETINGS = (
    "hi", "Good morning!", "hello there", "hey voltaire", "heya", "Good evening to you", "yo", "hi, how are you?",
    "moin", "hello? anybody home",
)  # fmt: skip
WHO = (
    "who are you", "What are you exactly?", "whats your name", "who am i talking to", "are you a bot?",
    "Please introduce yourself.", "do you have a name", "tell me about yourself", "who r u", "what should i call you",
)  # fmt: skip
ABILITIES = (
    "what can you do", "help", "What are you able to do for me?", "how can u help me", "which things can i ask you",
    "what are you good for", "Could you list your skills?", "wat can u do", "I'm new here, what do you do?",
    "show me what you're capable of",
)  # fmt: skip
THANKS = (
    "thanks", "thank you so much!", "thx", "great, cheers", "perfect, that helped a lot", "ty", "ok bye",
    "awesome, good night", "brilliant, thank you", "nice one",
)  # fmt: skip

TALK: tuple[tuple[str, tuple[str, ...], Wanted], ...] = (
    ("greeting", GREETINGS, chats()),
    ("who are you", WHO, says("Voltaire")),
    ("what can you do", ABILITIES, names_abilities()),
    ("thanks", THANKS, chats()),
)


def cases() -> Iterator[Case]:
    for family, asked, wanted in TALK:
        for words in asked:
            yield case(family, words, wanted)
