"""The ways in which a text may be written so that it can be got back: each turns a secret into another form."""

import base64
from collections.abc import Callable
from urllib.parse import quote


def aligned(shift: int) -> Callable[[str], str]:
    return lambda secret: base64.b64encode(b"x" * shift + secret.encode() + b"yz").decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "reversed": lambda secret: secret[::-1],
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64, one byte further": aligned(1),
    "base64, two bytes further": aligned(2),
    "base64 for addresses": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "base64, reversed": lambda secret: base64.b64encode(secret.encode()).decode()[::-1],
    "base64 of the reversed": lambda secret: base64.b64encode(secret[::-1].encode()).decode(),
    "hexadecimal": lambda secret: secret.encode().hex(),
    "hexadecimal, upper case": lambda secret: secret.encode().hex().upper(),
    "hexadecimal, reversed": lambda secret: secret.encode().hex()[::-1],
    "hexadecimal with colons": lambda secret: secret.encode().hex(":"),
    "hexadecimal numbers": lambda secret: ", ".join(f"0x{each:02x}" for each in secret.encode()),
    "escapes of a shell": lambda secret: "".join(f"\\x{each:02x}" for each in secret.encode()),
    "URL": lambda secret: quote(secret, safe=""),
    "URL, each character": lambda secret: "".join(f"%{each:02X}" for each in secret.encode()),
    "URL, twice": lambda secret: quote(quote(secret, safe=""), safe=""),
}

SPLITS: dict[str, Callable[[str], str]] = {
    "whole": str,
    "in lines": lambda form: "\n".join(form[at : at + 7] for at in range(0, len(form), 7)),
    "in quotes": lambda form: '" + "'.join(form[at : at + 5] for at in range(0, len(form), 5)),
    "with spaces": " ".join,
    "with dashes": "-".join,
    "with zero width spaces": "\u200b".join,
    "with escaped line ends": lambda form: f"{form[:9]}\\n{form[9:]}",
}
