"""Markdown to text with spans; its parser is loaded with the first text, not at the start."""

from bot.telegram.styled import Styled


def render(markdown: str) -> Styled:
    """The text and spans of a Markdown source; too deeply nested sources come as plain text."""
    from bot.telegram.markdown import page

    return page(markdown)


def plain(text: str) -> Styled:
    """Text without any span, fit for UTF-8."""
    return Styled(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
