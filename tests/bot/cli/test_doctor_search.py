"""The search engine, as `voltaire doctor` sees it."""

from pathlib import Path

import pytest

from bot.cli.doctor_machine import search
from bot.secret_values import secret_values
from bot.settings import Settings
from fakes.search_services import KEY, search_service
from fakes.searxng import result, searxng
from fakes.words import saying


def settings(url: str) -> Settings:
    return Settings(agent={"web": {"search_url": url}})


async def test_without_one_there_is_nothing_to_find() -> None:
    assert await search(settings("")) == []


async def test_one_that_answers_and_one_whose_engines_are_silent() -> None:
    async with searxng() as searx:
        searx.results = [result("https://a.example/", "A")]
        (found,) = await search(settings(searx.url))
        assert (found.status, found.detail) == (
            "pass",
            saying(f"127.0.0.1:{searx.port}", "1 result"),
        )
        searx.silent = [["brave", "timeout"]]
        (found,) = await search(settings(searx.url))
        assert (found.status, found.detail) == ("warn", saying("brave: timeout"))


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ({"formats": ()}, "json"),
        ({"limited": True}, "limiter"),
        ({"elsewhere": True}, "search_url"),
    ],
    ids=["json-off", "limiter", "elsewhere"],
)
async def test_each_refusal_has_its_remedy(fault: dict[str, object], remedy: str) -> None:
    async with searxng() as searx:
        for name, value in fault.items():
            setattr(searx, name, value)
        (found,) = await search(settings(searx.url))
    assert (found.status, found.remedy) == ("fail", saying(remedy, "docs/web.md"))


async def test_nobody_home() -> None:
    (found,) = await search(settings("http://olga:hunter2@127.0.0.1:1"))
    assert found.detail == "The search engine cannot be reached."
    assert (found.status, found.remedy) == ("fail", saying("127.0.0.1:1"))
    assert "hunter2" not in str(found)


def test_what_is_no_address_is_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="not an address such as"):
        settings("searx.lan")


async def test_a_service_with_a_key_is_named(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    chosen = Settings(agent={"web": {"search": "brave", "search_key_file": key_file}})
    assert secret_values(chosen, {}) == {"agent.web.search_key_file": KEY}
    async with search_service("brave") as service:
        (found,) = await search(chosen)
        assert (found.status, found.detail) == ("pass", saying("Brave at 127.0.0.1:", "0 results"))
        key_file.write_text(f"{KEY}x")
        (found,) = await search(chosen)
        assert (found.status, found.remedy) == ("fail", saying("Brave answered 422", "docs/web.md"))
        assert KEY not in str(found) and len(service.asked) == 1
    key_file.unlink()
    (found,) = await search(chosen)
    assert (found.status, found.remedy) == ("fail", saying(str(key_file), "not readable"))


@pytest.mark.parametrize(
    ("web", "told"),
    [
        ({"search": "brave"}, "brave, kagi and tavily, which need it"),
        ({"search_key_file": "/k", "search_url": "http://127.0.0.1:1"}, "search_key_file is for"),
        ({"search": "bing"}, "'searxng', 'brave', 'kagi' or 'tavily'"),
    ],
)
def test_half_a_search_is_an_error_of_the_configuration(web: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Settings(agent={"web": web})
