"""Globs as the tools understand them, as extended regular expressions. Pure."""

import re

PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]/]*\]|\{[^{}/]*\}|.", re.DOTALL)
WILDCARDS = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def beneath(folder: str, pattern: str) -> str:
    """An expression for paths that match `pattern` in `folder`, or are `folder` itself."""
    body = expression(pattern)
    return f"^{escaped(folder)}($|/{body}$)" if folder else f"^{body}$"


def expression(pattern: str) -> str:
    """Without a slash a pattern is held against the file's own name, at any depth.

    `./` in front keeps it to the folder itself. Without a wildcard it also names a directory and what is in it.
    """
    pattern, here = re.subn(r"^(\./)+", "", pattern.strip())
    if pattern.endswith("/"):
        pattern += "**"
    if pattern in ("", ".", "**", "**/*"):
        return ".*"
    anywhere = "" if here or "/" in pattern.replace("**/", "") else "(.*/)?"
    below = "" if is_wild(pattern) else "(/.*)?"
    return f"{anywhere}{translated(pattern)}{below}"


def is_wild(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[{")


def escaped(text: str) -> str:
    return re.sub(r"[.^$+*?()|\[\]{}\\]", r"\\\g<0>", text)


def translated(pattern: str) -> str:
    return "".join(piece_expression(piece) for piece in PIECE.findall(pattern))


def piece_expression(piece: str) -> str:
    if piece in WILDCARDS:
        return WILDCARDS[piece]
    if len(piece) > 1 and piece[0] == "{":
        return f"({'|'.join(translated(choice) for choice in piece[1:-1].split(','))})"
    if len(piece) > 1 and piece[0] == "[":
        return "[^" + piece[2:] if piece[1] == "!" else piece
    return escaped(piece)
