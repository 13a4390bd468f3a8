"""Which language a text is in, of those that speech engines speak: by its script, then by its commonest words.

This is enough to choose a voice for a sentence or more; for a single word the caller's default is taken.
"""

import re

SCRIPTS = {
    "ru": "\u0400-\u04ff",
    "el": "\u0370-\u03ff",
    "ar": "\u0600-\u06ff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "ko": "\uac00-\ud7af",
    "ja": "\u3040-\u30ff",
    "cmn": "\u4e00-\u9fff",
}
WORDS = {
    "en": "the and is are of to in that it you for with this not have be on was as your what",
    "de": "der die das und ist nicht ich du sie es ein eine zu mit auf für den dem von wie auch",
    "fr": "le la les et est pas je tu vous un une des du pour dans que qui avec sur ce il elle",
    "es": "el la los las y es no yo tú un una de que para con por en su se lo como está",
    "it": "il lo la gli e è non io un una di che per con in si come sono questo della nel",
    "pt": "o a os as e é não eu um uma de que para com por em se como está do da no na",
    "nl": "de het een en is niet ik je van dat op te zijn met voor maar ook aan er wat",
    "pl": "i w na nie to jest się z do że jak ale tak co po dla od czy już są",
    "sv": "och att det är en på som för av med den till inte jag har du vi ett kan",
}
COMMON = {language: frozenset(words.split()) for language, words in WORDS.items()}
LEAST = 2  # common words by which a language is recognized


def language_of(text: str, default: str = "en") -> str:
    """A code that espeak-ng knows, such as "de"; the default where the text does not tell."""
    letters = sum(map(str.isalpha, text)) or 1
    for language, signs in SCRIPTS.items():
        if len(re.findall(f"[{signs}]", text)) * 3 > letters:
            return language
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {
        language: sum(word in common for word in words) for language, common in COMMON.items()
    }
    best = max(counts, key=lambda language: (counts[language], language == default))
    return best if counts[best] >= LEAST else default
