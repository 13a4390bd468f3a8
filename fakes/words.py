"""A text that a person or a model reads, known by the words that matter in it."""

from typing import Any


class _Containing:
    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and all(
            word.casefold() in other.casefold() for word in self.words
        )

    def __hash__(self) -> int:
        return hash(self.words)

    def __repr__(self) -> str:
        return f"saying{self.words}"


def saying(*words: str) -> Any:
    """What equals every text with all of these words, names and figures in it.

    Its type is open, so that it stands wherever a text does, as a field of a
    whole value too. Case does not count, nor what stands around the words.
    """
    if not all(words) or not words:
        raise ValueError("any text would do")
    return _Containing(words)
