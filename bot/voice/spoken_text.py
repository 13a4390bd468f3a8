"""The sentences to say for an answer in Markdown: code, tables, formulas and addresses are mentioned, not read out."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from markdown_it.token import Token

from bot.markdown_dialect import parser
from bot.texts import Texts

MOST_CHARACTERS = 3000  # about four minutes
LONGEST = 300  # characters of a sentence; a longer one is cut at a pause
ADDRESS = re.compile(r"https?://[^\s<>()]+")
ENDS = re.compile(r"(?<=[.!?…:;])[\"'”’)]*\s+|(?<=[。！？])")


def sentences(markdown: str, texts: Texts) -> list[str]:
    """The sentences; after MOST_CHARACTERS, one that says that the rest is in the text."""
    said: list[str] = []
    for block in blocks(parser().parse(markdown), texts):
        for sentence in filter(str.strip, ENDS.split(speakable(block))):
            said += cut(sentence.strip())
        if sum(map(len, said)) > MOST_CHARACTERS:
            length = 0
            for number, sentence in enumerate(said):
                length += len(sentence)
                if length > MOST_CHARACTERS:
                    return [*said[: max(1, number)], texts.voice_rest]
    return said


def blocks(tokens: Sequence[Token], texts: Texts) -> Iterator[str]:
    """The words of each paragraph, heading and item, or a sentence on a block that cannot be read out."""
    rows, in_table = 0, False
    for token in tokens:
        match token.type:
            case "fence" | "code_block":
                yield texts.voice_code.format(lines=len(token.content.rstrip("\n").split("\n")))
            case "maths":
                yield texts.voice_formula
            case "table_open":
                rows, in_table = -1, True  # without the head
            case "tr_open":
                rows += 1
            case "table_close":
                in_table = False
                yield texts.voice_table.format(rows=rows)
            case "inline" if not in_table:
                yield inline(token.children or (), texts)


def inline(tokens: Sequence[Token], texts: Texts) -> str:
    words: list[str] = []
    for token in tokens:
        match token.type:
            case "text":
                words.append(ADDRESS.sub(lambda found: address(found[0], texts), token.content))
            case "code_inline" | "image":
                words.append(token.content)
            case "softbreak" | "hardbreak":
                words.append(" ")
    return "".join(words)


def address(url: str, texts: Texts) -> str:
    host = urlsplit(url).hostname or ""
    return texts.voice_link.format(host=host.removeprefix("www."))


def speakable(text: str) -> str:
    """Without emoji and other signs that a speech engine would describe."""
    kept = (
        " " if unicodedata.category(sign) in ("So", "Sk", "Cf", "Cs", "Co", "Cc") else sign
        for sign in text
    )
    return " ".join("".join(kept).replace("\ufe0f", "").split())


def cut(sentence: str) -> list[str]:
    """A long sentence in pieces that end at a pause."""
    found = []
    while len(sentence) > LONGEST:
        head = sentence[:LONGEST]
        at = max(head.rfind(", "), head.rfind(" – ")) + 1 or head.rfind(" ") + 1 or LONGEST
        found.append(sentence[:at].strip())
        sentence = sentence[at:].strip()
    return [*found, sentence] if any(map(str.isalnum, sentence)) else found
