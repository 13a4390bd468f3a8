"""Finds what must not be sent: the configured secrets, in the forms in which a model may write them, and
what looks like a key.

It is a net, not a wall: docs/security.md tells what it misses. %xx and \\xx are decoded, then only ASCII
letters and digits are compared, without their case: so a secret is found that was split by line ends,
spaces, quotes or punctuation. The time is linear in the text, whatever it holds, and depends little on the
number of secrets.
"""

import re
import string
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from backend.protocol import Phrase

SHORTEST = 8  # characters of a secret; a shorter one cannot be told from words and numbers
MIXED, UNMIXED = 8, 20  # letters and digits (of both kinds, of one kind) that no text has by chance
PIECE = 24  # letters and digits: a part of a secret of this size is found by itself
LONGEST = 4096  # bytes of a secret that are looked for
GRAM = 4  # characters of a block by which texts and secrets are first compared; memoryview's "I"
# Bytes of a stream that are kept before what is held back: room for the mark of a key, and for the first
# letters of a secret with a dozen codes such as %253a between them.
CONTEXT = 256
LONGEST_KEY = 600  # characters of a key of a known kind that a stream holds back
CHUNK, OVERLAP = 1 << 20, 4096  # bytes of a file
# Keys that the documentation of model servers gives where none is needed.
PLACEHOLDERS = {
    *("changeme", "lm-studio", "no-key-required", "not-needed", "not-required", "placeholder"),
    *("sk-no-key-required", "token-abc123"),
}

LETTERS, DIGITS = string.ascii_letters.encode(), string.digits.encode()
DROPPED = bytes(set(range(256)) - set(LETTERS + DIGITS))
FOLDED = bytes(range(256)).lower()
CODED = re.compile(
    rb"%(?:25)*([0-9A-Fa-f]{2})"  # also %2541, which was encoded twice
    rb"|(?:\\x|\\u00|&#x)([0-9A-Fa-f]{2})(?![0-9A-Fa-f])"
    rb"|\\[nrt]"
)
CODED_UNIT = re.compile(CODED.pattern + rb"|[A-Za-z0-9]")
CODED_BEGINNING = re.compile(rb"(?:%(?:25){0,8}[0-9A-Fa-f]?|\\(?:[xu]0{0,2}[0-9A-Fa-f]?)?)\Z")


@dataclass(frozen=True, slots=True)
class Leak:
    """What must not be sent: `what` names it without repeating it; `secret`: surely a configured one."""

    what: Phrase
    secret: bool


@dataclass(frozen=True, slots=True)
class KeyKind:
    """A kind of key: `mark` stands in each of them; `pattern` is searched only where it does."""

    name: Phrase
    mark: bytes
    pattern: re.Pattern[bytes]


def kind(name: Phrase, mark: str, rest: str, *, before: str = "[A-Za-z0-9]") -> KeyKind:
    """A key that is `mark`, not behind a character of `before`, then `rest`. All repeats are bounded."""
    own = re.escape(mark)
    return KeyKind(
        Phrase(name), mark.encode(), re.compile(f"{own}(?<!{before}{own}){rest}".encode())
    )


KINDS = (
    kind(Phrase("a private key"), "-----BEGIN ", r"(?:[A-Z0-9]{2,10} ){0,3}PRIVATE KEY"),
    kind(Phrase("a private key"), "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,58}"),
    kind(Phrase("a key of {service}", service="AWS"), "AKIA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    kind(Phrase("a key of {service}", service="AWS"), "ASIA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    kind(Phrase("a token of {service}", service="GitHub"), "gh", r"[pousr]_[A-Za-z0-9]{36}"),
    kind(Phrase("a token of {service}", service="GitHub"), "github_pat_", r"[A-Za-z0-9_]{50}"),
    kind(Phrase("a token of {service}", service="GitLab"), "glpat-", r"[A-Za-z0-9_-]{20}"),
    kind(Phrase("a token of {service}", service="Slack"), "xox", r"[abeoprs]-(?=[A-Za-z-]{0,40}[0-9])[A-Za-z0-9-]{20}"),
    kind(Phrase("a token of {service}", service="Slack"), "hooks.slack.com/services/", r"[A-Z0-9]{8,14}/[A-Z0-9]{8,14}/[A-Za-z0-9]{20}"),
    kind(Phrase("a token of a Telegram bot"), ":", r"(?<=[0-9]{8}:)[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", before="[^0-9]"),
    kind(Phrase("an API key"), "sk-", r"(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20}"),
    kind(Phrase("a key of {service}", service="Stripe"), "k_live_", r"[A-Za-z0-9]{20}", before="[^rs]"),
    kind(Phrase("a key of {service}", service="Google"), "AIza", r"[A-Za-z0-9_-]{35}"),
    kind(Phrase("a token of {service}", service="Hugging Face"), "hf_", r"(?=[A-Za-z]{0,33}[0-9])[A-Za-z0-9]{30}"),
    kind(Phrase("a token of {service}", service="npm"), "npm_", r"[A-Za-z0-9]{36}"),
    kind(Phrase("a token of {service}", service="PyPI"), "pypi-", r"AgEIcHlwaS5vcmc[A-Za-z0-9_-]{30}"),
    kind(Phrase("a signed token (JWT)"), "eyJ", r"[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10}"),
)  # fmt: skip
MARKS = (re.escape(each.mark) for each in KINDS if each.mark != b":")
KEY_BEGINNING = re.compile(b"|".join([*MARKS, rb"[0-9]{8}:"]))
HEAD_OF_KEY = b"-----BEGIN "
IN_KEYS = LETTERS + DIGITS + b"_-./:"


class LeakDetector:
    """Finds secrets and keys in what is about to be sent. `unwatched` names the secrets that are too short or
    plain to be told from ordinary text."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self.unwatched: list[str] = []
        self._names: dict[bytes, str] = {}  # by piece
        self._grams: dict[int, set[bytes]] = {}  # pieces by the blocks in them
        self._beginnings: dict[bytes, set[bytes]] = {}  # pieces by their first block
        self._plain: dict[bytes, str] = {}  # names of secrets that are found only as they are
        self._watched: set[bytes] = set()
        for name, value in (secrets or {}).items():
            self.watch(name, value)

    def watch(self, name: str, value: str) -> None:
        """Look for a secret from now on; `name` is its key in the configuration."""
        raw = value.strip().encode("utf-8", "surrogatepass")[:LONGEST]
        if not raw or raw in self._watched:
            return
        if len(raw) < SHORTEST or value.strip().lower() in PLACEHOLDERS:
            self.unwatched.append(name)
            return
        self._watched.add(raw)
        if not distinctive_parts(skeleton(raw)):
            self._plain[raw] = name
        for form in forms(raw):
            for piece in distinctive_parts(skeleton(form)):
                self._names[piece] = name
                self._beginnings.setdefault(piece[:GRAM], set()).add(piece)
                for at in range(len(piece) - GRAM + 1):
                    self._grams.setdefault(gram(piece[at : at + GRAM]), set()).add(piece)

    def find(self, text: str | bytes) -> Leak | None:
        """The first thing found that must not be sent, or needs an owner's approval."""
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if name := self._secret_in(raw):
            return Leak(Phrase("the secret {name}", name=name), secret=True)
        for each in KINDS:
            if each.mark in raw and each.pattern.search(raw):
                return Leak(Phrase("what looks like {kind}", kind=each.name), secret=False)
        return None

    def find_in_file(self, file: BinaryIO) -> Leak | None:
        """`find` for a whole open file, which is rewound. To be called in a thread."""
        file.seek(0)
        before, found = b"", None
        while found is None and (chunk := file.read(CHUNK)):
            found = self.find(before + chunk)
            before = (before + chunk)[-OVERLAP:]
        file.seek(0)
        return found

    def stream(self) -> "StreamedText":
        return StreamedText(self)

    def held_from(self, raw: bytes, shown: int) -> int:
        """The offset of the end of `raw` that may go on as a secret or a key; the length of `raw` where there is none.
        The first `shown` bytes have been searched before."""
        held = len(raw)
        if b"%" in raw or b"\\" in raw:
            beginning = CODED_BEGINNING.search(raw, max(0, held - CONTEXT))
            held = beginning.start() if beginning else held
        plain = skeleton(raw[:held])
        known_before = len(skeleton(raw[:shown])) - GRAM + 1
        for at in range(max(0, known_before, len(plain) - PIECE), len(plain) - GRAM + 1):
            known = self._beginnings.get(plain[at : at + GRAM])
            if known and any(piece.startswith(plain[at:]) for piece in known):
                held = place_of(raw, at)
                break
        for secret in self._plain:
            lengths = range(len(secret) - 1, GRAM - 1, -1)
            end = next((n for n in lengths if raw.endswith(secret[:n])), 0)
            held = min(held, len(raw) - end)
        word = len(raw.rstrip(IN_KEYS))
        if word < held and len(raw) - word <= LONGEST_KEY:
            held = word if KEY_BEGINNING.search(raw, word) else held
        head = raw.rfind(HEAD_OF_KEY)
        return held if head < 0 or b"\n" in raw[head:] else min(held, head)

    def _secret_in(self, raw: bytes) -> str:
        plain = skeleton(raw)
        blocks = memoryview(plain + bytes(-len(plain) % GRAM)).cast("I")
        # A piece is so long that wherever it stands, it covers a whole block of the text.
        near = {piece for each in self._grams.keys() & set(blocks) for piece in self._grams[each]}
        found = next((self._names[piece] for piece in near if piece in plain), "")
        return found or next((name for secret, name in self._plain.items() if secret in raw), "")


class StreamedText:
    """A text that is sent while it is written: `feed` returns what may be sent by now.

    What may become a secret is held back (`held`) until that is decided. Once one is found (`leak`),
    nothing more is returned.
    """

    def __init__(self, detector: LeakDetector) -> None:
        self.leak: Leak | None = None
        self._detector = detector
        self._shown = b""  # the end of what was returned
        self.held = b""

    def feed(self, text: str) -> str:
        return self.feed_bytes(text.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )

    def feed_bytes(self, piece: bytes) -> bytes:
        if self.leak:
            return b""
        suspect = self.held or len(piece) > GRAM  # a shorter piece alone ends no secret
        self.held += piece
        raw = self._shown + self.held
        self.leak = self._detector.find(raw) if suspect else None
        if self.leak:
            return b""
        end = self._detector.held_from(raw, len(self._shown))
        return self._give(max(0, end - len(self._shown)))

    def rest(self) -> bytes:
        """Return the text that was held back, at the end of the stream."""
        return b"" if self.leak else self._give(len(self.held))

    def close(self) -> str:
        """The rest of a text that is complete; the next one begins anew."""
        text = self.rest().decode("utf-8", "surrogatepass")
        self.leak, self._shown, self.held = None, b"", b""
        return text

    def allowed(self) -> bytes:
        """Release the rest although it holds what was found; what follows is searched anew."""
        self.leak, given = None, self.held
        self._shown, self.held = b"", b""
        return given

    def _give(self, count: int) -> bytes:
        given, self.held = self.held[:count], self.held[count:]
        self._shown = (self._shown + given)[-CONTEXT:]
        return given


def skeleton(raw: bytes) -> bytes:
    """Reduce a text to its ASCII letters, in lower case, and digits, with codes decoded."""
    if b"%" in raw or b"\\" in raw or b"&#x" in raw:
        raw = CODED.sub(decoded, raw)
    return raw.translate(FOLDED, DROPPED)


def decoded(code: re.Match[bytes]) -> bytes:
    return bytes.fromhex((code[1] or code[2] or b"").decode())


def place_of(raw: bytes, at: int) -> int:
    """The place in the text of character number `at` of its skeleton."""
    for unit in CODED_UNIT.finditer(raw):
        at -= 1 if len(unit[0]) == 1 else len(skeleton(unit[0]))
        if at < 0:
            return unit.start()
    return len(raw)


def forms(secret: bytes) -> Iterator[bytes]:
    """The secret as it is, in hexadecimal and base64, each forwards and backwards, and in numbers such as
    0x2f. (Codes such as %2f and \\x2f are decoded before.)"""
    for text in (secret, secret[::-1]):
        for form in (text, text.hex().encode(), *aligned_base64(text)):
            yield form
            yield form[::-1]
        yield b"".join(b"0x%02x" % each for each in text)


def aligned_base64(raw: bytes) -> Iterator[bytes]:
    """For each alignment, the characters of its base64 that do not depend on the text around it."""
    for shift in range(3):
        coded = b64encode(bytes(shift) + raw)
        yield coded[-(-shift * 4 // 3) : (shift + len(raw)) * 4 // 3]


def distinctive_parts(plain: bytes) -> list[bytes]:
    """Return the parts of a secret's skeleton that identify it; none if they could occur in ordinary text."""
    mixed = bool(set(plain) & set(DIGITS)) and bool(set(plain) & set(LETTERS))
    if len(plain) < (MIXED if mixed else UNMIXED):
        return []
    size = min(PIECE, len(plain))
    return [plain[at : at + size] for at in [*range(0, len(plain) - size, size), len(plain) - size]]


def gram(four: bytes) -> int:
    return memoryview(four).cast("I")[0]
