"""Alerts are numbered, kept and streamed."""

from pathlib import Path

from backend.control.alerts import Alerts


async def test_alerts_are_numbered_kept_and_streamed(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.read()
    alerts.add("heat", "warning", "Hot.")
    alerts.add("heat", "warning", "Hot.")
    alerts.add("heat", "over", "Cool.")
    later = Alerts(tmp_path / "alerts.jsonl")
    later.read()
    stream = later.stream(after=later.kept[0].id)
    assert (await anext(stream)).text == "Cool."
    later.add("xid", "critical", "Xid 79.")
    newest = await anext(stream)
    assert [alert.text for alert in later.kept] == ["Hot.", "Cool.", "Xid 79."]
    assert newest == later.kept[-1]
    assert newest.id > later.kept[1].id > later.kept[0].id


async def test_an_alert_file_that_cannot_be_rewritten_is_kept(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.add("heat", "warning", "Hot.")
    written = alerts.path.read_bytes()
    alerts.path.with_suffix(".new").mkdir()  # stands for a disk without state
    later = Alerts(alerts.path)
    later.read()
    assert [alert.text for alert in later.kept] == ["Hot."]
    assert alerts.path.read_bytes() == written
