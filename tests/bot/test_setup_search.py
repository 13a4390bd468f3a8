"""`voltaire setup search`: the service is saved and tried, and its key stays in a file."""

from pathlib import Path

import pytest

from fakes.search_services import KEY, search_service
from fakes.words import saying
from tests.bot.test_setup import configured, ended, voltaire

yaml = pytest.importorskip("yaml")
DOCS = Path(__file__).parents[2] / "docs" / "web.md"


async def test_a_key_is_kept_in_a_file_and_tried(tmp_path: Path) -> None:
    folder = tmp_path / "c" / "voltaire"
    async with search_service("brave") as service:
        said = f"bing\nbrave\n{KEY}x\n"
        code, out, err = await ended(await voltaire(tmp_path, "search", said=said))
        assert code == 0 and service.asked == [], err
        assert out == saying("'bing' is none of", "refuses its key", "Brave answered 422")
        words = ("search", "--search", "brave", "--search-key", KEY)
        code, out, more = await ended(await voltaire(tmp_path, *words))
        assert (code, len(service.asked)) == (0, 1), more
    assert out == saying("Brave at 127.0.0.1", "setup --upgrade")
    assert KEY not in out + err + more
    web = {"search": "brave", "search_key_file": str(folder / "search-key")}
    assert configured(tmp_path)["agent"]["web"] == web
    assert (folder / "search-key").read_text() == f"{KEY}\n"
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    # Another in its place keeps what else is configured.
    (folder / "config.toml").write_text((folder / "config.toml").read_text() + 'read = "ask"\n')
    code, out, err = await ended(await voltaire(tmp_path, "search", said="searxng\n"))
    assert code == 0, err
    web = {"search": "searxng", "search_url": "http://127.0.0.1:8888", "read": "ask"}
    assert configured(tmp_path)["agent"]["web"] == web
    made = out.partition("compose.yaml\n")[2]
    compose, settings = made.split("searxng/settings.yml\n")
    assert yaml.safe_load(compose)["services"]["searxng"]["ports"] == ["127.0.0.1:8888:8080"]
    made = yaml.safe_load(settings.partition("\n\n")[0])
    assert made["server"]["limiter"] is False and made["search"]["formats"] == ["html", "json"]
    secret = made["server"]["secret_key"]
    assert len(secret) == 64
    shown = out.replace(secret, "change this to a long random text")
    for file in DOCS.read_text().split("```yaml\n")[1:]:
        assert file.partition("```")[0] in shown


@pytest.mark.parametrize("said", ["later\n", "\n", "kagi\n"])
async def test_what_was_not_answered_changes_nothing(tmp_path: Path, said: str) -> None:
    code, out, err = await ended(await voltaire(tmp_path, "search", said=said))
    assert (code == 0) == (said != "kagi\n"), err
    assert ("`voltaire setup search` starts again" in err) == (said == "kagi\n"), err
    assert ("Nothing was changed. Web search: voltaire setup search" in out) == (code == 0), out
    assert not (tmp_path / "c" / "voltaire" / "config.toml").exists()
    code, _, err = await ended(await voltaire(tmp_path, "search", "--search", "bing"))
    assert (code, err) == (1, saying("'bing' is none of them"))
