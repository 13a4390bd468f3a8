"""Talk that needs no tool."""

from collections.abc import Iterator

from pocket.evaluation.case import Case, Wanted, case
from pocket.evaluation.checks import chats, names_abilities, says

GREETINGS = (
    "hi", "Morning, sunshine!", "hullo", "ahoy voltaire", "heya", "Good evening to you", "oi oi", "hey, is everything fine with you?",
    "moin", "hello? is this thing on",
)  # fmt: skip
WHO = (
    "so who exactly is this", "What are you exactly?", "what do people call you", "with whom do i have the pleasure", "are you a person or some program?",
    "Let's get to know each other, who are you?", "did they give you a name", "say a few words about yourself", "who r u", "what should i call you",
)  # fmt: skip
ABILITIES = (
    "so what are your talents", "help", "What sort of jobs can I hand you?", "how can u help me", "which things can i ask you",
    "what are you good for", "Could you go through the things you know how to do?", "wat can u do", "First time here. What are you there for?",
    "show me what you're capable of",
)  # fmt: skip
THANKS = (
    "thanks", "many many thanks, you saved my day!", "thx", "lovely, much obliged", "perfect, that helped a lot", "tysm", "ok thats it, see you",
    "awesome, good night", "brilliant, i owe you one", "nice one",
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
