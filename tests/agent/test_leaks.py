"""What is found of secrets and keys, in which forms, and what is not taken for one."""

import io
import random
import subprocess
import uuid
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.leaks import CHUNK, KINDS, Leak, LeakDetector
from backend.protocol import Phrase
from fakes.cases import cases
from fakes.encodings import ENCODINGS, SPLITS

NAME = "telegram.token"
TOKEN = "7311804495:AAHk3-9xTqLr_0vBwZyE2mNcD8sUuPfGa1o"
FOUND = Leak(Phrase("the secret {name}", name=NAME), secret=True)
ROOT = Path(__file__).parents[2]

KEYS = {
    "private": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "age": "AGE-SECRET-KEY-1" + "Q" * 58,
    "aws": "AKIA" + "ABCDEFGH23456723",
    "aws session": "ASIA" + "ABCDEFGH23456723",
    "github": "ghp_" + "a1B2" * 9,
    "github fine": "github_pat_" + "11ABCDEFG0" * 6,
    "gitlab": "glpat-" + "x9" * 10,
    "slack": "xoxb-" + "123456789012-123456789012-abcdefABCDEF",
    "slack hook": "https://hooks.slack.com/services/" + "T00000000/B00000000/" + "a1" * 12,
    "telegram": "https://api.telegram.org/bot" + TOKEN + "/getMe",
    "openai": "sk-proj-" + "aB3" * 12,
    "stripe": "sk_live_" + "a1B2c3" * 4,
    "google": "AIza" + "b4_" * 11 + "xy",
    "hugging face": "hf_" + "aB3" * 11,
    "npm": "npm_" + "aB3" * 12,
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + "aB3" * 12,
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
}


@cases("split", SPLITS)
@cases("encoding", ENCODINGS)
def test_a_secret_is_found_in_each_form(encoding: str, split: str) -> None:
    detector = LeakDetector({NAME: TOKEN})
    form = ENCODINGS[encoding](TOKEN)
    if encoding in ("URL, each character", "escapes of a shell") and split != "whole":
        form, split = f"{form[:30]}\n{form[30:]}", "whole"  # a code that is cut is another text
    assert detector.find(f"Here it is: {SPLITS[split](form)}. Done") == FOUND


printable = st.characters(min_codepoint=33, max_codepoint=126)
words = st.text(st.characters(codec="utf-8"), max_size=40)
# As tokens are: with letters and digits enough to be told from words.
random_secrets = st.tuples(
    st.text(printable, max_size=12), st.uuids(), st.text(printable, max_size=12)
).map(lambda parts: f"{parts[0]}{parts[1].hex[:14]}a7{parts[2]}")


@settings(max_examples=150, deadline=None)
@example("A::::::::e3e70682c2094ca7", "URL, each character", "whole", "", "")
@given(random_secrets, st.sampled_from(sorted(ENCODINGS)), st.sampled_from(sorted(SPLITS)), words, words)  # fmt: skip
def test_any_secret_is_found_in_any_form(
    secret: str, encoding: str, split: str, before: str, after: str
) -> None:
    form = ENCODINGS[encoding](secret)
    if "%" in form or "\\" in form or "0x" in form:
        split = "whole"  # a split escape is another text
    if "upper" in encoding and "%" in secret:
        return
    if "%" in secret or "\\" in secret or "0x" in secret or "&#x" in secret:
        secret = form = secret.replace("%", "_").replace("\\", "_").replace("0x", "_").replace("&#x", "_")  # fmt: skip
    detector = LeakDetector({NAME: secret})
    text = f"{before} {SPLITS[split](form)} {after}"
    assert detector.find(text) == FOUND
    stream, shown = detector.stream(), ""
    for at in range(0, len(text), 3):
        shown += stream.feed(text[at : at + 3])
    assert stream.leak == FOUND
    assert text.startswith(shown)
    assert detector.find(shown) is None


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.randoms())
@example("50 %", random.Random(0))
@example("a \\ b \\x4", random.Random(1))
@example("-----BEGIN CERTIFICATE-----\nMII", random.Random(2))
@example("see https://example.org/eyJ/gh/sk-1 and 73118044: 7311804495:AAHk3", random.Random(3))
@example("é" * 40 + "7311" + "ü" * 40, random.Random(4))
def test_other_text_streams_unchanged(text: str, chance: random.Random) -> None:
    stream, shown, at = LeakDetector({NAME: TOKEN}).stream(), "", 0
    while at < len(text):
        size = chance.randint(1, 9)
        shown += stream.feed(text[at : at + size])
        at += size
    assert shown + stream.close() == text


@cases("size", [1, 2, 3, 4, 5, 8, 13, 80])
@cases("encoding", ENCODINGS)
def test_nothing_of_a_secret_is_streamed_but_three_characters(encoding: str, size: int) -> None:
    detector = LeakDetector({NAME: TOKEN})
    text = f"The token is ({ENCODINGS[encoding](TOKEN)}), as you said."
    stream, shown = detector.stream(), ""
    for at in range(0, len(text), size):
        shown += stream.feed(text[at : at + size])
    secret = text.index("(") + 1
    begins = 6 if encoding.startswith("base64") else 3  # the first of base64 are not the secret's
    codes = 4 if "%" in text or "\\x" in text else 2 if ":" in text else 1
    assert len(shown) <= secret + begins * codes
    assert stream.leak == FOUND
    assert stream.close() == ""
    assert stream.feed("and on") == "and on"


@pytest.mark.parametrize("name", KEYS)
def test_a_key_of_a_known_kind_is_found_and_not_streamed(name: str) -> None:
    detector, key = LeakDetector(), KEYS[name]
    leak = detector.find(f"It is {key}\nindeed")
    assert leak is not None
    assert not leak.secret
    assert key not in leak.what
    for size in (1, 3, 4, 7, 200):
        text, stream, shown = f"It is {key}\nindeed", detector.stream(), ""
        for at in range(0, len(text), size):
            shown += stream.feed(text[at : at + size])
        assert stream.leak == leak, size
        assert key[-12:] not in shown


def test_each_kind_has_a_key_above() -> None:
    assert {kind.name for kind in KINDS} == {
        str(leak.what).removeprefix("what looks like ")
        for key in KEYS.values()
        if (leak := LeakDetector().find(key))
    }


def test_ordinary_text_holds_nothing() -> None:
    """Commits, UUIDs, digests, code, documentation: against five random secrets."""
    chance = random.Random(5)
    secrets = {
        str(n): f"{chance.randrange(10**9)}:AA{chance.randbytes(25).hex()}" for n in range(5)
    }
    detector = LeakDetector(secrets)
    tracked = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.lock", "*.toml"], cwd=ROOT, stdout=subprocess.PIPE
    )
    here = [ROOT / name for name in tracked.stdout.decode().split()]
    texts = [path.read_text("utf-8") for path in here]
    texts = [text for text in texts if TOKEN not in text]  # but for the tests of secrets
    texts += [chance.randbytes(20).hex() for _ in range(500)]
    texts += [str(uuid.UUID(bytes=chance.randbytes(16))) for _ in range(500)]
    texts += [ENCODINGS["base64"](chance.randbytes(60).hex()) for _ in range(500)]
    texts += [
        *("task-manager-for-something-else-1", "disk-2024-01-01-backup-of-everything"),
        *("risk-assessment-of-the-year-2026-and-2027", "-----BEGIN CERTIFICATE-----"),
        *("-----BEGIN PUBLIC KEY-----", "at 12:34:56 on 2026-11-22T10:15:00Z", "AKIA is a prefix"),
        *("eyJ is how a token begins", "ghost_writer", "hf_hub_download", "10.0.0.1:8080", "sk-"),
    ]
    assert len(texts) > 1500
    assert [text[:80] for text in texts if detector.find(text)] == []


@pytest.mark.parametrize("value", ["", "123:abc", "lm-studio", "not-needed", "sk-no-key-required"])
def test_what_is_no_secret_is_named_and_not_sought(value: str) -> None:
    detector = LeakDetector({"backend.api_key": value})
    assert detector.unwatched == (["backend.api_key"] if value else [])
    assert detector.find(f"The key is {value}, or 123abc, or not needed.") is None


def test_words_are_found_as_they_are_and_in_other_forms() -> None:
    detector = LeakDetector({NAME: "correct-battery"})
    assert detector.find("a correct battery is needed") is None
    assert detector.find("it is correct-battery") == FOUND
    assert detector.find("it is Y29ycmVjdC1iYXR0ZXJ5") == FOUND
    stream = detector.stream()
    assert "".join(map(stream.feed, "it is correct-battery!")) == "it is cor"


def test_a_part_of_a_long_secret_is_found() -> None:
    chance = random.Random(1)
    key = "\n".join(chance.randbytes(48).hex() for _ in range(30))
    detector = LeakDetector({"tls.key_file": key})
    assert detector.find(key[1000:1060]) == Leak(Phrase("the secret tls.key_file"), secret=True)


@pytest.mark.parametrize("at", [0, CHUNK - 20, 2 * CHUNK - 3, 3 * CHUNK])
def test_a_file_is_looked_through_to_its_end(at: int) -> None:
    file = io.BytesIO(b"\xff" * at + TOKEN.encode() + b"\0" * 100)
    detector = LeakDetector({NAME: TOKEN})
    file.seek(7)
    assert detector.find_in_file(file) == FOUND
    assert file.tell() == 0
    assert detector.find_in_file(io.BytesIO(TOKEN.encode("utf-16"))) == FOUND
    assert detector.find_in_file(io.BytesIO(b"\xff" * at)) is None


HOSTILE = {
    "prefixes": "sk-" * 100_000,
    "escapes": "%25" * 100_000,
    "escapes of escapes": "\\x25" * 80_000,
    "tokens": "eyJa." * 60_000,
    "token heads": "eyJ" + "a" * 300_000,
    "colons": "12345678:" * 30_000,
    "heads of keys": "-----BEGIN " * 25_000,
    "beginnings of the secret": TOKEN[:20] * 15_000,
    "beginnings in base64": ENCODINGS["base64"](TOKEN)[:20] * 15_000,
    "no letter": "\u200b-" * 100_000,
    "half characters": "\ud800" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends(name: str) -> None:
    """In milliseconds; what grew faster than the text would not end at all."""
    text = HOSTILE[name]
    detector = LeakDetector({NAME: TOKEN})
    assert detector.find(text) is None
    stream = detector.stream()
    part = text[:40_000]
    shown = "".join(stream.feed(part[at : at + 50]) for at in range(0, len(part), 50))
    assert shown + stream.close() == part
