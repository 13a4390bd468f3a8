"""Links of the documents lead somewhere, and the reference of settings is that of the code."""

import importlib.util
import re
import subprocess
import tomllib
from functools import cache
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
    rows = re.findall(
        r"^\| `([\w.-]+)` \| [^|]+ \| ([\d,]+) \| ([\d.]*) ?\| ([^|]+) \|$", text, re.M
    )
    assert len(rows) > 20
    for name, window, vram, speed in rows:
        assert int(window.replace(",", "")) == profiles[name]["context"], name
        figure = re.match(r"[\d.]+", speed)
        reported = profiles[name].get("reference", {}).get("decode_tok_s")
        assert (float(figure[0]) if figure else None) == reported, name
        expects = profiles[name].get("memory", {}).get("vram_mib")
        assert vram == (f"{expects / 1024:.1f}" if expects else ""), name


@cache
def source() -> str:
    return subprocess.run(
        ["git", "grep", "-h", "", "--", "agent", "backend", "bot", "bench", "fakes"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_name_of_the_code_that_a_page_has_is_there(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for name in set(re.findall(r"`([^`\s]+)`", text)):
        if re.fullmatch(r"(?:agent|backend|bench|bot|fakes|tests)/[\w./]+", name):
            assert (ROOT / name).exists() or name.endswith("/it.po"), name
        elif found := re.fullmatch(r"([A-Z]\w+[a-z]\w*)\.([a-z_]+)", name):
            assert f"class {found[1]}" in source(), name
            assert re.search(rf"\b{found[2]}\b", source()), name
