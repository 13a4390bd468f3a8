"""The fixed texts, one table per language. A language is one more `Texts` in `TABLES`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Texts:
    """English. Texts are Markdown; names in braces are filled in."""

    # the live reply
    reading: str = "reading {done:,} of {total:,} tokens"
    reading_eta: str = "reading {done:,} of {total:,} tokens, about {seconds} s"
    reading_estimate: str = "reading, about {seconds} s (an estimate)"
    # delivery
    in_doubt: str = "I could not tell whether my last message reached you."
    show_again: str = "Show again"
    shown_again: str = "Sent again."
    not_in_doubt: str = "That message was already sent again."
    undeliverable: str = "A message could not be delivered: {why}."


TABLES = {"en": Texts()}


def texts(language: str) -> Texts:
    """The table of a language tag like "fr" or "fr-CA", else English."""
    return TABLES.get(language.partition("-")[0].lower(), TABLES["en"])
