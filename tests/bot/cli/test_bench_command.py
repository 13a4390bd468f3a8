"""voltaire bench as a person calls it, with the pocket model on the embedded server."""

import json
import sys
from pathlib import Path

import pytest

from fakes.command_line import voltaire

SMALL = {"VOLTAIRE_BACKEND__CONTEXT": "1024", "VOLTAIRE_BACKEND__SERVER": "embedded"}


def test_a_machine_is_measured_with_a_picture(tmp_path: Path) -> None:
    code, out, err = voltaire(tmp_path, "bench", "--picture", str(tmp_path / "b.png"), env=SMALL)
    assert (code, err) == (0, "")
    server, flags, titles, units, *rows = out.splitlines()
    assert server.startswith("pocket: embedded xllamacpp ")
    assert flags.startswith("  KV f16: -m pocket.gguf -c 1024 ")
    assert titles.split() == ["prefill", "decode", "first", "drafts", "cache"]
    assert units.split() == ["tok/s", "tok/s", "s", "kept", "reused"]
    assert [row[:20].strip() for row in rows] == [
        "128 tokens",
        "512 tokens",
        "first token, cold",
        "first token, warm",
        "cache, chats in turn",
    ]
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_two_servers_are_compared(tmp_path: Path) -> None:
    for name in ("a", "b"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m backend.embedded "$@"\n')
        program.chmod(0o755)
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    env = SMALL | {"PYTHONPATH": str(Path(__file__).parents[3])}
    code, out, _ = voltaire(tmp_path, "bench", "--server", a, "--server", b, "--json", env=env)
    found = json.loads(out)
    assert code == 0
    assert [row["setting"]["server"] for row in found["rows"]] == [a, a, b, b] * 2
    assert [(pair["name"], pair["figure"]) for pair in found["compared"]] == [
        ("128 tokens", "prefill"),
        ("128 tokens", "decode"),
        ("512 tokens", "prefill"),
        ("512 tokens", "decode"),
    ]


@pytest.mark.slow
def test_flags_are_swept_and_the_best_proposed(tmp_path: Path) -> None:
    code, out, _ = voltaire(tmp_path, "bench", "sweep", "--json", env=SMALL)
    found = json.loads(out)
    assert code == 0
    first = [tried["words"] for tried in found["tried"] if not tried["again"]]
    assert first[:4] == ["as it is", "-ub 256", "-ub 1024", "-ub 2048"]
    assert first[-1] == "KV q8_0"
    assert all(tried["row"]["decode_tok_s"] > 0 for tried in found["tried"])
    assert set(found) == {"tried", "flags", "gain"}
