"""voltaire gpu: the card is lent and taken back in a terminal, beside a backend with a real model server."""

import json
from pathlib import Path

import pytest

from agent.store import open_store
from backend.config import BackendConfig
from fakes import gguf_maker
from fakes.backend_running import running
from fakes.command_line import voltaire, voltaire_beside
from fakes.words import saying


async def test_the_card_is_lent_and_taken_back(tmp_path: Path) -> None:
    model, socket = gguf_maker.make(tmp_path / "m.gguf"), tmp_path / "b.sock"
    settings = f'[state]\ndir = "{tmp_path / "a"}"\n[backend]\nsocket = "{socket}"\n'
    backend = BackendConfig(tmp_path / "b", socket=socket, model=str(model), server="embedded")

    async def gpu(*words: str) -> tuple[int, str]:
        code, out, err = await voltaire_beside(tmp_path, "gpu", *words, config=settings)
        return code, out or err

    async with open_store(tmp_path / "a" / "voltaire.db") as store:
        pass
    async with running(backend) as it:
        await it.ready()
        assert await gpu("back") == (0, saying("not lent"))
        assert await gpu("lend", "90m") == (0, saying("unloaded until"))
        lent = (await it.client.status()).backend
        assert (lent.state, lent.pid, lent.lent_until is not None) == ("sleeping", None, True)
        assert await gpu("back") == (0, saying("loaded again"))
        await it.until(lambda now: now.backend.serving and now.backend.lent_until is None)
    async with open_store(tmp_path / "a" / "voltaire.db") as store, store.database.read() as tx:
        kept = await tx.all("SELECT facts FROM ledger WHERE kind = 'admin' ORDER BY number")
    acts = [json.loads(facts) for (facts,) in kept]
    assert [each["seconds"] for each in acts if each["act"] == "lend"] == [0, 5400, 0]


@pytest.mark.parametrize(
    ("words", "config", "told"),
    [
        (("lend", "soon"), "", saying("'soon'", "2h or 90m")),
        (("lend", "25h"), "", saying("at most a day")),
        (("lend", "2h"), '[backend]\nkind = "external"\n', saying("another's", "cannot be lent")),
        (("back",), "", saying("backend")),
    ],
    ids=["no time", "too long", "another's server", "no backend"],
)
def test_what_cannot_be_lent_is_told(
    tmp_path: Path, words: tuple[str, ...], config: str, told: str
) -> None:
    code, out, err = voltaire(tmp_path, "gpu", *words, config=config)
    assert code and (out, err) == ("", told)
