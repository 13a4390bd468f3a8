"""Links of the documents lead somewhere, and the reference of settings is that of the code."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def test_the_configuration_reference_is_that_of_the_settings() -> None:
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs" / "make_configuration.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "configuration.md").read_text() == module.page()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (page.parent / target).exists(), target


def test_every_address_of_the_settings_is_in_the_list_of_those_that_are_contacted() -> None:
    reference = (ROOT / "docs" / "configuration.md").read_text()
    sections = re.findall(r"^## `\[+(.+?)\]+`\n(.*?)(?=^## |\Z)", reference, re.M | re.S)
    ours = {"telegram.webhook_url", "page.url"}  # where others reach this program
    addresses = {
        f"{section}.{key}"
        for section, keys in sections
        for key in re.findall(r"^\| `((?:\w+_)?url|homeserver|allow_hosts|network)` ", keys, re.M)
    } - ours
    security = (ROOT / "docs" / "security.md").read_text()
    _, _, contacted = security.partition("## Every address that is contacted")
    assert [each for each in sorted(addresses) if f"`{each}" not in contacted] == []


def test_the_tables_of_profiles_are_those_of_the_profiles() -> None:
    text = (ROOT / "docs" / "models.md").read_text()
    _, _, processor = text.partition("## On a processor")
    named = set[str]()
    for row in processor.partition("## Chat templates")[0].splitlines():
        named.update(re.findall(r"`([\w.-]+)`", row.split("|")[1]) if row.startswith("|") else ())
    folder = ROOT / "backend" / "models" / "profiles"
    profiles = {path.stem: tomllib.loads(path.read_text()) for path in folder.glob("*.toml")}
    assert named == set(profiles)
    rows = re.findall(r"^\| `([\w.-]+)` \| [^|]+ \| ([\d,]+) \| ([^|]+) \|$", text, re.M)
    assert len(rows) > 20
    for name, window, speed in rows:
        assert int(window.replace(",", "")) == profiles[name]["context"], name
        figure = re.match(r"[\d.]+", speed)
        reported = profiles[name].get("reference", {}).get("decode_tok_s")
        assert (float(figure[0]) if figure else None) == reported, name
