"""A clock that was ahead and is set back: nothing waits for the time that it had shown."""

import json
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from cryptography import x509

from agent.chats.chats import Chats
from agent.chats.maintenance import Maintenance
from agent.context.window import ModelWindow
from agent.mcp.tls_termination import CertificateAuthority
from agent.store import open_store
from backend.control.alerts import Alerts
from backend.protocol import Phrase
from backend.server.canary import CanaryRecord

NOW = 1_800_000_000.0
HOUR = 3600.0
YEARS = 10 * 365 * 24 * HOUR
AHEAD = (HOUR, 26 * HOUR, YEARS)
ASLEEP = """
import time
from agent.web.browser import CACHED_SECONDS, PageCache, WebPage
cache = PageCache()
cache.put("cli", "a", WebPage("a", "text", time.monotonic()))
cache.put("cli", "b", WebPage("b", "text", cache.clock()))
print(cache.get("cli", "a") is None, cache.get("cli", "b") is None)
"""


@pytest.mark.parametrize("ahead", AHEAD)
async def test_what_is_done_each_day_goes_on(tmp_path: Path, ahead: float) -> None:
    now, done = [NOW + ahead], list[float]()

    async def work() -> None:
        done.append(now[0])

    async with open_store(tmp_path / "voltaire.db", lambda: now[0]) as store:
        idle = Maintenance(store, cast("ModelWindow", None), cast("Chats", None), work)
        for at in (NOW + ahead, NOW + ahead, NOW, NOW + 1, NOW + 25 * HOUR):
            now[0] = at
            await idle._every(24 * HOUR, "daily", work)
    assert done == [NOW + ahead, NOW, NOW + 25 * HOUR]


@pytest.mark.parametrize("ahead", AHEAD)
def test_conversations_are_checked_in_the_next_night(tmp_path: Path, ahead: float) -> None:
    record = CanaryRecord(tmp_path / "canary.json")
    record.add("one", NOW + ahead, "")
    assert record.due("one", NOW, 3) and not record.due("one", NOW, 12)
    record.add("one", NOW, "")
    assert not record.due("one", NOW + HOUR, 3)


@pytest.mark.parametrize("ahead", AHEAD)
def test_an_alert_is_told_again(tmp_path: Path, ahead: float) -> None:
    before = datetime.now(UTC) + timedelta(seconds=ahead)
    kept = {"id": 1, "at": before, "name": "heat", "level": "critical", "text": Phrase("hot")}
    path = tmp_path / "alerts.jsonl"
    path.write_text(json.dumps(kept, default=str) + "\n")
    alerts = Alerts(path)
    alerts.read()
    assert len(alerts.kept) == 1
    for _ in range(2):
        alerts.add("heat", "critical", Phrase("hot"))
    assert len(alerts.kept) == 2


@pytest.mark.parametrize("ahead", AHEAD)
async def test_a_stranger_is_told_again(tmp_path: Path, ahead: float) -> None:
    now = [NOW + ahead]
    async with open_store(tmp_path / "voltaire.db", lambda: now[0]) as store:
        told = []
        for at in (NOW + ahead, NOW + ahead + 60, NOW, NOW + 60):
            now[0] = at
            told.append(await store.people.stranger_notice_due("telegram", "9", "Eve"))
    assert told == [True, False, True, False]


def test_certificates_of_a_sandbox_hold_at_any_time() -> None:
    authority = CertificateAuthority()
    found = x509.load_pem_x509_certificate(authority.certificate)
    for year in (1971, 2026, 2036, 2100):
        at = datetime(year, 1, 1, tzinfo=UTC)
        assert found.not_valid_before_utc < at < found.not_valid_after_utc
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    assert len(context.get_ca_certs()) == 1


def test_a_page_that_was_read_before_a_night_of_sleep_is_read_again() -> None:
    """In a time namespace in which the machine has slept for more hours than it was awake."""
    wrapper = ["unshare", "--map-root-user", "--time", "--boottime", "100000"]
    run = subprocess.run([*wrapper, "true"], capture_output=True, check=False)
    if run.returncode:
        pytest.skip("time namespaces cannot be made here")
    run = subprocess.run([*wrapper, sys.executable, "-c", ASLEEP], capture_output=True, check=True)
    assert run.stdout.split() == [b"True", b"False"], run.stderr
