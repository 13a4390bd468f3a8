"""Urgent words are answered by a small model on the processor while the card is lent: the real server and Pocket."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from backend import proc
from backend.client import BackendUnavailable
from backend.config import BackendConfig
from fakes.gguf_chain import make_chain
from fakes.words import saying
from tests.backend.conftest import QUICK, running


def record(config: BackendConfig) -> Path:
    return config.state_dir / "urgent/run/server.json"


async def test_pocket_answers_while_the_card_is_lent_and_is_gone_afterwards(
    config: BackendConfig,
) -> None:
    async with running(replace(config, urgent_model="pocket"), QUICK) as it:
        await it.ready()
        with pytest.raises(BackendUnavailable, match="The card is not lent."):
            await it.client.answer_urgent("How full is the disk?")
        await it.client.lend(3600)
        words, pids = ("Hello.", "What time is it?"), set()
        asked = [asyncio.create_task(it.client.answer_urgent(each)) for each in words]
        while not all(task.done() for task in asked):
            if record(config).is_file():
                pids.add(json.loads(record(config).read_text())["pid"])
            await asyncio.sleep(0.01)
        said, status = await asyncio.gather(*asked), await it.client.status()
        assert (status.backend.state, status.backend.pid) == ("sleeping", None)
        await it.client.lend(0)
        await it.ready()
    told = [each.rpartition("\n\n") for each in said]
    assert all(words and name.startswith("_pocket, a small model") for words, _, name in told)
    assert len(pids) == 2
    assert not any(proc.state(pid) for pid in pids)


async def test_it_answers_these_words_with_its_own_template_and_without_a_card(
    config: BackendConfig, tmp_path: Path
) -> None:
    """A model that says this behind a prompt that ends so, and nothing behind another one."""
    model = make_chain(tmp_path / "m.gguf", "Turn the tap off.")
    async with running(replace(config, urgent_model=str(model)), QUICK) as it:
        await it.ready()
        await it.client.lend(3600)
        said = await it.client.answer_urgent("The kitchen is under water!")
    assert said.startswith("Turn the tap off.\n\n_m, a small model on the processor")


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("", "No model is set for urgent words"),
        ("pokcet", "There is no profile called pokcet"),
        ("/nowhere/small.gguf", "small.gguf"),
    ],
)
async def test_why_there_is_no_answer_is_one_sentence(
    config: BackendConfig, model: str, why: str
) -> None:
    async with running(replace(config, urgent_model=model), QUICK) as it:
        await it.ready()
        await it.client.lend(3600)
        assert ("/urgent" in str((await it.client.status()).backend.held)) == bool(model)
        with pytest.raises(BackendUnavailable) as refused:
            await it.client.answer_urgent("Hello.")
    assert str(refused.value) == saying(why)
