"""Telegram and Matrix in one bot process, or either alone; no library of an app that is not configured."""

from pathlib import Path

import pytest

from bot.cli.doctor_machine import matrix as check_matrix
from bot.settings import MatrixSection, Settings, StateSection
from fakes.bot_process import Process
from fakes.localgram import Localgram, is_final
from fakes.matrix_person import MatrixPerson
from fakes.model_scripted import ModelServer, says
from fakes.synapse import PASSWORD, Synapse
from fakes.words import saying


async def test_doctor_says_what_is_missing(server: Synapse, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    state = StateSection(dir=tmp_path / "state")

    async def found(**fields: object) -> list[str]:
        section = MatrixSection(**{"homeserver": server.url, "user": "@bot:x", **fields})
        settings = Settings.model_construct(matrix=section, state=state)
        return [f"{each.status}: {each.detail}" for each in await check_matrix(settings)]

    assert await found(homeserver="") == []
    good = {"password_file": password, "owners": ["@me:x"]}
    assert await found(**good) == [saying("pass: @bot:x", "next start")]
    assert await found(password_file=password) == ["warn: No owner is configured."]
    assert await found(owners=["@me:x"]) == [saying("fail: @bot:x", "never logged in")]
    (away,) = await found(homeserver="http://127.0.0.1:9", **good)
    assert away == saying("fail: ", "http://127.0.0.1:9 ", "cannot be reached")


@pytest.mark.slow
async def test_both_in_one_process(server: Synapse, olga: MatrixPerson, tmp_path: Path) -> None:
    account = await server.account("voltaire")
    (tmp_path / "password").write_text(PASSWORD)
    async with Localgram("4242:secret") as gram, ModelServer(says("Hello.")) as model:
        phone = gram.user("Olga", id=111, started=True)
        process = Process(gram, tmp_path, model.url, 111)
        process.first = "# a new interpreter: its memory is measured"
        sizes = []
        for homeserver in ("", server.url):
            process.configure(
                MATRIX__HOMESERVER=homeserver,
                MATRIX__USER=account,
                MATRIX__PASSWORD_FILE=str(tmp_path / "password"),
                MATRIX__OWNERS=olga.id,
            )
            async with process.running():
                await phone.send("hi")
                assert (await phone.next_message(where=is_final)).text == "Hello."
                if homeserver:
                    room = await olga.room_with(account, encrypted=True)
                    await olga.say(room, "hi")
                    assert (await olga.next()).body == "Hello."
                sizes.append(process.resident_mib())
                await process.stop()
    print(f"resident: Telegram alone {sizes[0]} MiB, with Matrix {sizes[1]} MiB")
    assert sizes[1] - sizes[0] < 40
