"""Calendar accounts and the rendering of pages, as `voltaire doctor` sees them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.web import chromium
from bot.cli.doctor_machine import calendar, rendering, secrets
from bot.settings import Settings, StateSection
from fakes.radicale import Calendar, Radicale
from fakes.toolkits import program
from fakes.words import saying


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Calendar]:
    server = Radicale(tmp_path / "radicale")
    await server.start()
    yield server.calendar()
    server.stop()


def settings(folder: Path, **sections: object) -> Settings:
    return Settings(state=StateSection(dir=folder / "s"), agent=sections)


async def test_calendar_accounts_each_in_one_sentence(tmp_path: Path, home: Calendar) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("hunter2")
    accounts = {
        "home": home.account,
        "stranger": {**home.account, "password_file": str(wrong)},
        "keyless": {**home.account, "password_file": str(tmp_path / "none")},
        "away": {"url": "http://127.0.0.1:9/"},
    }
    found = await calendar(settings(tmp_path, calendar=accounts))
    assert [(each.status, each.detail) for each in found] == [
        ("pass", "home answers; entries today: 0."),
        ("fail", saying("stranger: The server", "does not take its user and password")),
        ("fail", saying("keyless: The password_file of the calendar keyless")),
        ("fail", saying("away: The server", "cannot be reached")),
    ]
    assert "hunter2" not in str(found) and home.password not in str(found)
    assert await calendar(settings(tmp_path)) == []


async def test_rendering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await rendering(settings(tmp_path)) == []
    on = settings(tmp_path, web={"render": True})
    if chromium.PROGRAM.exists():
        (found,) = await rendering(on)
        assert (found.status, found.detail) == ("pass", saying("Chromium", "renders pages"))
    for name, detail in {
        "none": ("There is no Chromium here",),
        "old": ("too old: version 98", str(chromium.LEAST)),
        "unseen": ("renders nothing in the sandbox",),  # the sandbox does not hold it
    }.items():
        monkeypatch.setattr(chromium, "PROGRAM", tmp_path / name)
        if name != "none":
            program(tmp_path / name, f"echo Chromium {98 if name == 'old' else 156}.0.1")
        (found,) = await rendering(on)
        assert (found.status, found.detail) == ("fail", saying(*detail)) and found.remedy


async def test_a_key_that_others_can_read(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sesame")
    key.chmod(0o644)
    file = tmp_path / "config.toml"
    file.write_text(f'[agent.web]\nsearch = "brave"\nsearch_key_file = "{key}"\n')
    on = settings(tmp_path)
    on._path = file
    (found,) = await secrets(on)
    assert found.status == "fail" and str(key) in found.detail and "sesame" not in str(found)
