"""What the backend says reaches a person in the person's language; what it says anew has a form for that."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.language import ENGLISH, FIELD, languages, speaking, translated
from agent.leaks import KINDS
from agent.retelling import FACTS, REASONS, REQUESTS, SOURCES, WITHHELD, patterns, retold
from agent.sandbox.hosts import TUNNEL, HostRequest
from backend.gpu.health import XIDS
from backend.gpu.nvml import THROTTLE
from backend.server.diagnosis import SIGNALS, SIGNS, diagnose
from fakes.words import saying

ROOT = Path(__file__).parent.parent.parent
SENTENCE = re.compile(r"[A-Zx].* .*[.]")
# Modules of the backend whose sentences come to a chat: as reasons, alerts, refusals and offers.
HEARD = [
    *sorted((ROOT / "backend" / "server").glob("*.py")),
    *sorted((ROOT / "backend" / "gpu").glob("*.py")),
    *(ROOT / "backend" / "models" / f"{name}.py" for name in ("fit", "placement", "profile", "pull")),
    *(ROOT / "backend" / name for name in ("client.py", "state.py")),
]  # fmt: skip
# What is filled in, where it is words of the backend's own, by its expression.
OWN_WORDS = {
    "at": "The GPU is at 90 °C",
    "cooled": "The GPU has cooled to 60 °C",
    "verb": "does",
    "load": "idle",
    "place": "card",
    "there": "there is one",
    "text": "The machine went down without a shutdown, last seen x idle, 80 W, 60 °C.",
    "shortage(profile.name, own)": "x with a window of 1 tokens needs 1 MiB more on the card (x)",
    "missing": "x with a window of 1 tokens needs 1 MiB more on the card (x)",
    "remedy": " Get it: voltaire model pull x.",
}
ELSEWHERE = (  # of the command line
    "The profile names no repository to look at.",
    "The hub does not tell the size of x.",
    "The hub broke off (x); try again.",
    "x is here already.",
    "x with a window of 1 tokens needs 1 MiB more on the card (x); x tokens with a x cache would fit.",
)


def sentences(path: Path) -> Iterator[str]:
    """The sentences of a module, "x" for what is filled in; not its docstrings and log lines."""
    tree = ast.parse(path.read_text("utf-8"))
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(node.value)
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log.")
        ):
            inner.update(each for each in ast.walk(node) if each is not node)
    for node in ast.walk(tree):
        if node not in inner and (text := filled(node)) and SENTENCE.fullmatch(text):
            yield text


def filled(node: ast.AST) -> str:
    match node:
        case ast.Constant(str() as text):
            return FIELD.sub("x", text)
        case ast.JoinedStr(values):
            return "".join(map(filled, values))
        case ast.FormattedValue(value):
            return OWN_WORDS.get(ast.unparse(value), "x")
    return ""


def known(text: str) -> bool:
    """Whether all of it would be said anew."""
    return any(pattern.fullmatch(text) for _, pattern in patterns(REASONS)) or (
        ". " in text and all(map(known, re.split(r"(?<=[.?]) (?=[A-Z])", text)))
    )


@pytest.mark.parametrize("path", HEARD, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_sentence_of_the_backend_that_a_chat_hears_has_a_form(path: Path) -> None:
    found = [text for text in sentences(path) if text not in ELSEWHERE]
    assert [text for text in found if not known(text)] == []


def test_sentences_are_found() -> None:
    assert sum(1 for path in HEARD for _ in sentences(path)) > 60
    assert not known("This sentence is new.")


def test_what_is_in_tables_has_a_form() -> None:
    told = [*XIDS.values(), *THROTTLE.values(), *(sentence for _, sentence in SIGNALS.values())]
    told += [sentence.format("x") for _, _, sentence in SIGNS]
    assert [text for text in told if not known(text)] == []
    with speaking("de"):
        kinds = {kind.name: retold(f"what looks like {kind.name}", WITHHELD) for kind in KINDS}
    assert [name for name, text in kinds.items() if "aussieht" not in text or name in text] == []


@pytest.mark.parametrize("code", [code for code in languages() if code != ENGLISH])
def test_what_has_a_form_is_said_anew_with_what_was_filled_in(code: str) -> None:
    for table in (REASONS, SOURCES, REQUESTS, WITHHELD, FACTS):
        for form in table:
            names = {name[1:-1]: f"x{n}" for n, name in enumerate(FIELD.findall(form))}
            with speaking(code):
                assert retold(form.format(**names), table) == translated(form).format(**names)


def test_parts_and_numbers_are_in_the_language_too() -> None:
    missing = "The model file is missing: /m/q.gguf. Get it: voltaire model pull qwen3-4b."
    with speaking("de"):
        whole = retold(f"The model server cannot be started: {missing}")
        assert whole == saying("Modellserver", "Modelldatei fehlt", "/m/q.gguf")
        assert whole.endswith(": voltaire model pull qwen3-4b.") and "Get it" not in whole
        less = retold("The GPU ran out of memory; continuing with a window of 16,384 tokens.")
        assert less == saying("Speicher der GPU", "Fenster", "16\u202f384 Tokens")
        tunnel = str(HostRequest(TUNNEL, "example.org", 443))
        assert retold(tunnel, REQUESTS).startswith("Mit example.org:443 verbinden. Was dort")
    with speaking("ru"):
        assert retold("page https://example.org/", SOURCES) == "страница https://example.org/"


def test_words_of_others_and_english_stay_as_they_came() -> None:
    ended = diagnose(1, ["error: something odd"]).sentence
    assert retold(ended) == ended
    with speaking("fr"):
        assert retold(ended) == saying("serveur de modèle", "code 1 ", "error: something odd")
        assert retold("ggml: 12.5 is odd. So it is.") == "ggml: 12.5 is odd. So it is."
        assert retold("") == ""


def test_a_text_of_any_length_is_answered() -> None:
    nested, repeated = "No backup was made: " * 5000, " MiB more on the card (" * 5000
    with speaking("de"):
        assert retold(nested) == nested and retold(repeated) == repeated
