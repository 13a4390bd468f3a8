"""Alerts are numbered, kept and streamed."""

import logging
from pathlib import Path

import pytest

from backend.control.alerts import Alerts
from backend.protocol import Phrase


async def test_alerts_are_numbered_kept_and_streamed(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.read()
    alerts.add("heat", "warning", Phrase("Hot."))
    alerts.add("heat", "warning", Phrase("Hot."))
    alerts.add("heat", "over", Phrase("Cool."))
    later = Alerts(tmp_path / "alerts.jsonl")
    later.read()
    stream = later.stream(after=later.kept[0].id)
    assert (await anext(stream)).text == "Cool."
    later.add("xid", "critical", Phrase("Xid 79."))
    newest = await anext(stream)
    assert [alert.text for alert in later.kept] == ["Hot.", "Cool.", "Xid 79."]
    assert newest == later.kept[-1]
    assert newest.id > later.kept[1].id > later.kept[0].id


async def test_who_comes_later_is_not_told_of_what_has_ended(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.add("failed", "critical", Phrase("The model file is missing."))
    alerts.add("heat", "warning", Phrase("Hot."))
    assert alerts.stands("failed") and not alerts.stands("xid")
    alerts.add("failed", "over", Phrase("The model answers now."))
    assert not alerts.stands("failed")
    stream = alerts.stream(after=0)
    told = [(await anext(stream)).text for _ in range(2)]
    assert told == ["Hot.", "The model answers now."]
    alerts.add("failed", "critical", Phrase("The model file is missing."))  # again
    assert (await anext(stream)).level == "critical"


async def test_an_alert_file_that_cannot_be_rewritten_is_kept(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.add("heat", "warning", Phrase("Hot."))
    written = alerts.path.read_bytes()
    alerts.path.with_suffix(".new").mkdir()  # stands for a disk without state
    later = Alerts(alerts.path)
    later.read()
    assert [alert.text for alert in later.kept] == ["Hot."]
    assert alerts.path.read_bytes() == written


def test_a_damaged_alert_file_keeps_no_backend_from_starting(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.add("heat", "warning", Phrase("Hot."))
    with alerts.path.open("ab") as file:
        file.write(b"\xff\xfe half a line, as a power cut leaves it\n")
    later = Alerts(alerts.path)
    later.read()
    assert [alert.text for alert in later.kept] == ["Hot."]


def test_each_alert_is_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The journal alone tells the day: heat and less memory, too."""
    alerts = Alerts(tmp_path / "alerts.jsonl")
    with caplog.at_level(logging.INFO):
        alerts.add("heat", "critical", Phrase("The GPU is at 84 °C; new work waits."))
        alerts.add("memory", "warning", Phrase("Memory ran out; now a window of 6,144 tokens."))
        alerts.add("heat", "over", Phrase("The GPU has cooled to 75 °C; work goes on."))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "alert name=heat level=critical text=The GPU is at 84 °C; new work waits."),
        (
            "WARNING",
            "alert name=memory level=warning text=Memory ran out; now a window of 6,144 tokens.",
        ),
        ("INFO", "alert name=heat level=over text=The GPU has cooled to 75 °C; work goes on."),
    ]


async def test_each_end_is_told(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    for _ in range(2):  # of a card that was lent, of which nothing is told
        alerts.add("lent", "over", Phrase("The card is back."))
    assert [alert.level for alert in alerts.kept] == ["over", "over"]
