"""What `voltaire doctor` finds: each fault by its name, with a remedy; nothing where all is well."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from agent.store import open_store
from agent.store.database import migrations
from backend.gpu.nvml import load_library
from backend.models.outlook import Machine
from backend.service import serve_backend
from bot.cli.backend_config import backend_config
from bot.cli.connect import backend_client
from bot.cli.doctor_server import card
from bot.settings import Settings, StateSection
from fakes import gguf_maker
from fakes.command_line import start_voltaire
from fakes.llama_server_flags import LLAMA_SERVER_FLAGS
from fakes.localgram import Localgram
from fakes.patience import SECONDS
from fakes.toolkits import program
from fakes.words import saying

NVML = Path(__file__).parents[3] / "fakes" / "nvml.c"

Found = dict[str, tuple[str, str, str]]  # check: status, detail, remedy

BIG = """
title = "Big"
context = 32768
[model]
path = "{model}"
"""


async def doctor(home: Path, **settings: object) -> tuple[int | None, Found]:
    """Exit code and findings; of a check that found several things, the worst."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
    env |= {"XDG_CONFIG_HOME": str(home / "c"), "VOLTAIRE_STATE__DIR": str(home / "s")}
    env |= {name: str(value) for name, value in settings.items()}
    process = await start_voltaire("doctor", "--json", env=env, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    rows = [
        tuple(row[k] for k in ("check", "status", "detail", "remedy")) for row in json.loads(out)
    ]
    worst = sorted(rows, key=lambda row: ("pass", "warn", "fail").index(row[1]))
    return process.returncode, {check: (status, said, how) for check, status, said, how in worst}


def trouble(found: Found) -> Mapping[str, str]:
    return {check: status for check, (status, _, _) in found.items() if status != "pass"}


async def test_a_new_installation_lacks_a_backend_and_a_token(tmp_path: Path) -> None:
    code, found = await doctor(tmp_path)
    here = ("units", "documents", "voice")  # by what this machine has
    missing = {check: status for check, status in trouble(found).items() if check not in here}
    assert (code, missing) == (0, {"backend": "warn"})
    assert set(found) == {
        *("python", "sandbox", "gpu", "server", "model", "fit", "backend", "database"),
        *("telegram", "disk", "clock", "secrets", "units", "font", "documents", "voice"),
    }


async def test_a_newer_schema_and_a_server_that_is_away(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s" / "voltaire.db") as store:
        pass
    for version, expected in (
        (999, ("fail", "voltaire upgrade")),
        (len(migrations()), ("pass", "")),
    ):
        with closing(sqlite3.connect(store.database.path)) as database:
            database.execute(f"PRAGMA user_version = {version}")
        _, found = await doctor(
            tmp_path,
            VOLTAIRE_TELEGRAM__TOKEN="1:a",
            VOLTAIRE_TELEGRAM__BASE_URL="http://127.0.0.1:9",
        )
        assert (found["database"][0], found["database"][2]) == expected
    status, said, remedy = found["telegram"]
    assert (status, "cannot be reached" in said, "waits" in remedy) == ("fail", True, True)


async def test_the_model_is_tried_while_a_turn_waits_for_a_person(tmp_path: Path) -> None:
    settings = Settings(state=StateSection(dir=tmp_path / "s"))
    async with serve_backend(backend_config(settings)), backend_client(settings) as client:
        async for _ in client.ready(SECONDS):
            pass
        async with client.turn("tg:1"):
            _, found = await doctor(tmp_path)
    assert found["tool calls"][0] == "pass", found


async def test_an_owner_who_is_paired_is_one(tmp_path: Path) -> None:
    async with Localgram("1000001:right") as gram:
        settings = {
            "VOLTAIRE_TELEGRAM__TOKEN": gram.token,
            "VOLTAIRE_TELEGRAM__BASE_URL": gram.url,
        }
        async with open_store(tmp_path / "s" / "voltaire.db") as store:
            code = await store.people.make_code("owner", 60)
        assert (await doctor(tmp_path, **settings))[1]["telegram"][1] == "No owner is configured."
        async with open_store(tmp_path / "s" / "voltaire.db") as store:
            assert await store.people.use_code("telegram", "7", "Ann", code) == "owner"
        assert (await doctor(tmp_path, **settings))[1]["telegram"][0] == "pass"


async def test_each_fault_is_named_with_its_remedy(tmp_path: Path) -> None:
    state, token = tmp_path / "s", tmp_path / "token"
    state.mkdir(mode=0o755)
    (state / "voltaire.db").write_bytes(b"no database" * 1000)
    token.write_text("1000001:wrong")
    token.chmod(0o644)
    async with Localgram("1000001:right") as gram:
        code, found = await doctor(
            tmp_path,
            VOLTAIRE_TELEGRAM__TOKEN_FILE=token,
            VOLTAIRE_TELEGRAM__BASE_URL=gram.url,
            VOLTAIRE_BACKEND__PROFILE="qwen2.5-3b",
            VOLTAIRE_BACKEND__SERVER="/absent",
        )
    assert code == 1
    database, model = state / "voltaire.db", state / "models/qwen2.5-3b-instruct-q4_k_m.gguf"
    for check, detail, how in (
        ("server", "/absent", "voltaire server build"),
        ("model", str(model), "voltaire model pull qwen2.5-3b"),
        ("telegram", "Unauthorized", "@BotFather"),
        ("secrets", f"{state} {token}", f"chmod go= {state} {token}"),
    ):
        assert found[check][0] == "fail" and detail in found[check][1] and how in found[check][2]
    status, said, remedy = found["database"]
    assert status == "fail" and remedy.startswith("voltaire restore ")
    assert str(database) in said and "damaged" in said
    assert "wrong" not in str(found)


async def test_a_build_with_a_known_fault_is_told_with_its_source(tmp_path: Path) -> None:
    flags = "\n".join(sorted({"-m", "-c", *LLAMA_SERVER_FLAGS}))
    server = program(
        tmp_path / "llama-server",
        f'[ "$1" = --version ] && echo "version: 9300 (abc)" || cat <<END\n{flags}\nEND',
    )
    _, found = await doctor(tmp_path, VOLTAIRE_BACKEND__SERVER=server)
    assert found["server"][0] == "pass"
    status, said, source = found["server build"]
    assert (status, said) == ("warn", saying("In builds 9292 to 9820", "cache of prompts"))
    assert source.endswith("/llama.cpp/pull/25070")


async def test_a_driver_that_does_not_fit_a_v100_and_a_model_too_large_for_it(
    tmp_path: Path,
) -> None:
    scene = fake_card(tmp_path, driver=590, capability=70, total=8 << 20)
    profiles = tmp_path / "c/voltaire/profiles"
    profiles.mkdir(parents=True)
    model = gguf_maker.make(tmp_path / "big.gguf")
    (profiles / "big.toml").write_text(BIG.format(model=model))
    code, found = await doctor(tmp_path, VOLTAIRE_BACKEND__PROFILE="big", **scene)
    assert code == 1
    assert found["gpu"][:2] == ("fail", saying("driver 590.10", "does not fit"))
    assert found["gpu"][2] == saying("driver", "570 to 580")
    assert found["fit"][0] == "fail" and "MiB more on the card" in found["fit"][1]
    assert found["fit"][2] == "voltaire model fit big"
    scene = fake_card(tmp_path, driver=575, capability=70, total=16 << 30)
    _, found = await doctor(tmp_path, VOLTAIRE_BACKEND__PROFILE="big", **scene)
    assert (found["gpu"][0], found["fit"][0]) == ("pass", "pass")


@pytest.mark.parametrize(
    ("code", "how"),
    [(4, "usermod"), (9, "modprobe"), (18, "restart"), (999, "container"), (15, "Xid"), (1, "Xid")],
)
async def test_why_no_card_can_be_used_says_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvml: Path | None, code: int, how: str
) -> None:
    if nvml is None or not load_library(str(nvml)):
        pytest.skip("no C compiler")
    (tmp_path / "scene").write_text(f"unusable {code}\n")
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "scene"))
    (found,) = await card(Settings.model_validate({"backend": {"profile": "qwen2.5-3b"}}))
    machine = Machine.here(tmp_path)
    assert (found.status, found.detail) == ("warn", f"No GPU can be used: {machine.problem}.")
    assert machine.problem and found.remedy == saying(how)


def fake_card(folder: Path, **scene: int) -> dict[str, str]:
    """An environment in which NVML tells of such a card."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = folder / "libnvidia-ml.so.1"
    flags = ("-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1")
    subprocess.run([compiler, *flags, "-o", library, NVML], check=True)
    (folder / "scene").write_text("".join(f"{k} {v}\n" for k, v in {"used": 0, **scene}.items()))
    return {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML": str(folder / "scene")}
