"""Links of the documents lead somewhere, and the reference of settings is that of the code."""

import importlib.util
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from agent.chats import maintenance
from agent.schedule import night, scheduler, watches
from agent.schedule.planner import JobLimits
from agent.store import jobs
from backend.build import recipe, release
from backend.control import gpu_queue
from backend.gpu import health
from backend.measure import sweep
from backend.models import fit, memory, placement
from backend.server import launch, lending, process
from backend.state import Timing
from bot import acts, agent_config, backup, intake, metrics
from bot.page import access, server
from bot.settings import BackendSection, NightSection

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


WORDS = {1: "one", 3: "three", 4: "four", 5: "five", 7: "seven", 10: "ten"}
FIGURES: list[tuple[str, str, object]] = [  # page, words in which it stands, the figure of the code
    ("operating", "restarted in {:.0f} to", process.FIRST_S),
    ("operating", "to {:.0f} s; open turns", process.LAST_S),
    ("operating", "{} starts in a row", WORDS[process.GIVE_UP_AFTER]),
    ("operating", "a try every {} minutes", WORDS[round(process.RETRY_S / 60)]),
    ("operating", "a card at {} °C", BackendSection().warn_celsius),
    ("operating", "°C, at {} °C", BackendSection().hold_celsius),
    ("operating", "is held until {} °C", BackendSection().resume_celsius),
    ("operating", "more than {}", WORDS[intake.BACKLOG]),
    ("operating", "those of {} days", WORDS[backup.DAYS]),
    ("operating", "newest of {} weeks", WORDS[backup.WEEKS]),
    ("operating", "at most {:,} bytes", agent_config.MOST_INSTRUCTIONS),
    ("operating", "(at most {})", WORDS[scheduler.CATCH_UP]),
    ("operating", "at most every {:.0f} minutes", JobLimits().model_interval.seconds / 60),
    ("operating", "at most {} jobs of it", JobLimits().by_model),
    ("operating", "{:.0f} % of the limit behind it", watches.HYSTERESIS * 100),
    ("operating", "after {} looks", WORDS[watches.FAILURES]),
    ("operating", "two messages; {} hour", {3600: "an"}[watches.LEAST_SECONDS]),
    ("operating", "the newest {} are kept", jobs.LOOKS),
    ("operating", "Up to {} runs of a job wait", jobs.MOST_WAITING),
    ("operating", "with up to {} KiB of data", acts.MOST_DATA >> 10),
    ("operating", "of data, {} times a minute", WORDS[server.MOST_A_MINUTE]),
    ("operating", "(about {} minutes of one core", recipe.CORE_MINUTES["cuda"]),
    ("operating", "at least {} characters", access.SHORTEST_KEY),
    ("operating", "{} a minute after its end", {30.0: "half"}[metrics.SETTLED_SECONDS]),
    ("operating", "speed fallen by a {}", {0.75: "quarter"}[health.SLOW]),
    ("operating", "ends within {:.0f} s or is made again", lending.STEP_SECONDS),
    ("operating", "{} minute longer", {60.0: "a"}[lending.HELD_SECONDS]),
    ("operating", "cannot within {:.0f} s", Timing().wake),
    ("operating", "back after {} day", {86_400.0: "a"}[Timing().restore]),
    ("operating", "up to {} times, each time", WORDS[NightSection().attempts]),
    ("operating", "allows it in {} days", WORDS[round(night.LONGEST_WAIT / 86_400)]),
    ("operating", "`[agent.night]` ({})", f"{night.HOURS.start:%H:%M} to {night.HOURS.end:%H:%M}"),
    ("architecture", "takes over {:.0f} s to read", Timing().least_saved),
    ("architecture", "{} a minute after a chat's", {30.0: "Half"}[maintenance.QUIET_SECONDS]),
    ("models", "at most {} minutes for one", WORDS[round(gpu_queue.LONGEST_TURN_SECONDS / 60)]),
    ("models", "CUDA's own {:.1f} GB", memory.CUDA_OVERHEAD / 2**20 / 1000),
    ("models", "and {:.1f} GB of headroom", fit.HEADROOM / 2**20 / 1000),
    ("models", "gives way to {}, 1/2, 3/8, 1/4 or 1/8", {0.75: "3/4"}[placement.WINDOW_SHARES[1]]),
    ("models", "least {:.0f} % quicker", sweep.GAIN * 100),
    ("models", "must be {:.0f} % faster", sweep.GAIN * 100),
    ("models", "(at most {} GiB;", int(launch.CUDA_CACHE_BYTES) >> 30),
    ("models", "Of the last {} releases", WORDS[release.LOOKED_AT]),
    ("models", "({} a slot)", memory.RunOptions(8192).checkpoints),
]


@pytest.mark.parametrize(("page", "words", "figure"), FIGURES)
def test_a_figure_of_a_page_is_that_of_the_code(page: str, words: str, figure: object) -> None:
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text().split())
    assert words.format(figure) in text


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
