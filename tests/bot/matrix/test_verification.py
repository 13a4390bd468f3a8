"""Devices verified by emoji in the owner's terminal, and the keys as a file that Matrix apps import."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from nio import MegolmEvent, RoomMessagesResponse, RoomMessageText
from nio.api import MessageDirection
from nio.crypto.olm_machine import Olm
from nio.crypto.sas import Sas, SasState
from nio.event_builders import ToDeviceMessage
from nio.events import KeyVerificationEvent

from bot.acts import ACTS
from bot.cli.matrix import export_copy
from bot.holder import Holder
from bot.matrix.verification import MAC_V2, VERIFICATION, verified_in_terminal
from fakes.bot_running import RunningBot
from fakes.command_line import voltaire
from fakes.matrix_person import MatrixPerson, matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.patience import SECONDS, soon
from fakes.synapse import Synapse
from fakes.words import saying


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.matrix.verification.LOOK_SECONDS", 0.01)


class App:
    """The person's app: begins a verification, and shows emoji."""

    def __init__(self, person: MatrixPerson, bot: str) -> None:
        self.person, self.bot = person, bot
        self.seen: list[Any] = []
        person.client.add_to_device_callback(cast(Any, self._take), KeyVerificationEvent)

    async def _take(self, event: Any) -> None:
        self.seen.append(event)
        self.person._news.set()

    async def begin(self) -> Sas:
        client = self.person.client
        await self.person.until(lambda: list(client.device_store.active_user_devices(self.bot)))
        (device,) = client.device_store.active_user_devices(self.bot)
        begin = client.create_key_verification(device)
        sas = self.sas  # nio forgets it as soon as it is canceled
        await client.to_device(begin)
        return sas

    @property
    def sas(self) -> Sas:
        (sas,) = self.person.keys.key_verifications.values()
        return cast(Sas, sas)

    async def emoji(self) -> list[str]:
        """What it shows, once both keys are there."""
        await self.person.until(lambda: self.sas.established_sas)
        return [sign for sign, _ in self.sas.get_emoji()]

    def verified_by(self, run: RunningBot[Any]) -> bool:
        machine = run.bot.channel.encryption.machine
        device = machine.device_store[self.person.id][self.person.client.device_id]
        return bool(machine.is_device_verified(device))


class Terminal:
    """`voltaire matrix verify`; `same` answers its question."""

    def __init__(self, run: RunningBot[Any], same: bool | None = True) -> None:
        self.said: list[str] = []
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if same is not None:
            self.answer.set_result(same)
        loop = asyncio.get_running_loop()

        async def answered() -> bool:
            return await self.answer

        def confirm(question: str) -> bool:
            return asyncio.run_coroutine_threadsafe(answered(), loop).result()

        async def act(name: str, /, **fields: Any) -> Any:
            return await ACTS[name](cast(Holder, run), json.loads(json.dumps(fields)))

        self.task = asyncio.create_task(
            verified_in_terminal(act, SECONDS, self.said.append, confirm)
        )

    async def ended(self) -> str:
        return await asyncio.wait_for(self.task, SECONDS)


async def waits(run: RunningBot[Any]) -> None:
    while not await run.store.database.value("SELECT 1 FROM facts WHERE key = ?", VERIFICATION):
        await asyncio.sleep(0.003)


async def met(scenario: MatrixScenario, olga: MatrixPerson) -> App:
    room = await olga.room_with(scenario.account, encrypted=True)
    await olga.say(room, "hi")
    await olga.next()
    return App(olga, scenario.account)


@pytest.mark.parametrize("mac", [pytest.param("v1", marks=pytest.mark.slow), "v2"])
async def test_the_same_emoji_verify_both_devices(
    scenario: MatrixScenario, olga: MatrixPerson, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mac == "v2":  # as apps other than nio's offer it
        monkeypatch.setattr(Sas, "_mac_v1", [Sas._mac_normal, MAC_V2])
    async with scenario.open() as run:
        app = await met(scenario, olga)
        terminal = Terminal(run, same=None)
        await waits(run)
        sas = await app.begin()
        shown = await app.emoji()
        await soon(lambda: terminal.said)
        assert all(sign in terminal.said[0] for sign in shown)
        assert sas.chosen_mac_method == (MAC_V2 if mac == "v2" else Sas._mac_normal)
        assert not app.verified_by(run)
        terminal.answer.set_result(True)
        await olga.client.confirm_short_auth_string(sas.transaction_id)
        assert await terminal.ended() == ""
        assert app.verified_by(run) and str(olga.client.device_id) in terminal.said[-1]
        await olga.until(lambda: sas.verified)


async def test_other_emoji_verify_nothing(scenario: MatrixScenario, olga: MatrixPerson) -> None:
    async with scenario.open() as run:
        app = await met(scenario, olga)
        terminal = Terminal(run, same=False)
        await waits(run)
        sas = await app.begin()
        await app.emoji()
        assert await terminal.ended() == saying("emoji", "not the same")
        await olga.until(lambda: sas.canceled)
        assert not app.verified_by(run)


@pytest.mark.slow
async def test_a_key_that_is_another_one_verifies_nothing(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    """As the app of whoever runs the homeserver would send it: the emoji are right, its device is not."""
    async with scenario.open() as run:
        app = await met(scenario, olga)
        terminal = Terminal(run)
        await waits(run)
        sas = await app.begin()
        await app.emoji()
        sas.accept_sas()
        info = "MATRIX_KEY_VERIFICATION_MAC"
        info += f"{olga.id}{olga.client.device_id}{scenario.account}{sas.other_olm_device.id}"
        info += sas.transaction_id
        assert sas.established_sas
        reckon: Callable[[str, str], str] = sas.established_sas.calculate_mac
        key = "ed25519:ELSEWHERE"
        content = {
            "mac": {key: reckon("another key", info + key)},
            "keys": reckon(key, info + "KEY_IDS"),
            "transaction_id": sas.transaction_id,
        }
        mac = ToDeviceMessage(
            "m.key.verification.mac", scenario.account, sas.other_olm_device.id, content
        )
        await olga.client.to_device(mac)
        assert await terminal.ended() == saying("key is another")
        assert not app.verified_by(run)


async def test_nobody_verifies_without_a_terminal_and_no_stranger_with_one(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    eve_id = await server.account("eve")
    scenario.config["allow"] = [eve_id]
    async with scenario.open() as run, matrix_person(server.url, eve_id, tmp_path / "eve") as eve:
        app = await met(scenario, olga)
        sas = await app.begin()
        await olga.until(lambda: sas.canceled)
        of_eve = await met(scenario, eve)
        terminal = Terminal(run)
        await waits(run)
        hers = await of_eve.begin()
        await eve.until(lambda: hers.canceled)
        assert terminal.said == [] and sas.state == SasState.canceled
        terminal.task.cancel()


@pytest.mark.slow
async def test_an_app_that_asks_first_is_told_that_we_are_ready(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    """As newer apps do; what is no verification at all harms nothing."""
    async with scenario.open() as run:
        await met(scenario, olga)
        terminal = Terminal(run)
        await waits(run)
        (device,) = olga.client.device_store.active_user_devices(scenario.account)
        seen: list[Any] = []
        from nio.events import UnknownToDeviceEvent

        async def take(event: Any) -> None:
            seen.append(event)
            olga._news.set()

        olga.client.add_to_device_callback(cast(Any, take), UnknownToDeviceEvent)
        asked = {
            "from_device": olga.client.device_id,
            "methods": ["m.sas.v1"],
            "transaction_id": "t",
        }
        for kind, content in (
            ("start", {"transaction_id": "x", "from_device": {}}),
            ("key", {"nothing": 1}),
            ("request", asked),
        ):
            message = ToDeviceMessage(
                f"m.key.verification.{kind}", scenario.account, device.id, content
            )
            await olga.client.to_device(message)
        await olga.until(lambda: seen)
        assert seen[0].type == "m.key.verification.ready"
        assert seen[0].source["content"]["methods"] == ["m.sas.v1"]
        terminal.task.cancel()


@pytest.mark.slow
async def test_the_keys_are_exported_as_apps_import_them(
    scenario: MatrixScenario, olga: MatrixPerson, tmp_path: Path
) -> None:
    async with scenario.open():
        await met(scenario, olga)
        file = tmp_path / "keys.txt"
        count = export_copy(scenario.folder / "matrix", file, "a passphrase")
        assert file.stat().st_mode & 0o077 == 0 and count >= 2
        found = Olm.import_keys_static(str(file), "a passphrase")
        assert len(found) == count
        assert "BEGIN MEGOLM SESSION DATA" in file.read_text()
        mine = {session.id for session in olga.keys.inbound_group_store}
        assert {session.id for session in found} <= mine
        assert not [path for path in scenario.folder.iterdir() if path.name.startswith("keys-")]


async def test_another_device_reads_with_the_exported_keys_what_was_said_before_it(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    async with scenario.open():
        await met(scenario, olga)
        file = tmp_path / "keys.txt"
        export_copy(scenario.folder / "matrix", file, "a passphrase")
    (room,) = olga.client.rooms
    async with matrix_person(server.url, scenario.account, tmp_path / "new") as device:
        await device.until(lambda: room in device.client.rooms)

        async def read() -> list[str]:
            page = await device.client.room_messages(
                room, "", direction=MessageDirection.front, limit=100
            )
            assert isinstance(page, RoomMessagesResponse)
            found = [e for e in page.chunk if isinstance(e, RoomMessageText | MegolmEvent)]
            return [e.body if isinstance(e, RoomMessageText) else "?" for e in found]

        assert set(await read()) == {"?"}
        await device.client.import_keys(str(file), "a passphrase")
        said = await read()
    assert said[0] == "hi" and "Hello." in said and "?" not in said


def test_the_commands_say_what_is_missing(tmp_path: Path) -> None:
    code, _, err = voltaire(tmp_path, "matrix", "verify")
    assert (code, err) == (2, saying("Matrix is not configured"))
    config = '[matrix]\nhomeserver = "http://127.0.0.1:9"\nuser = "@v:x"\n'
    assert voltaire(tmp_path, "matrix", "verify", config=config)[2] == saying("bot does not run")
    keys = ("matrix", "export-keys", str(tmp_path / "keys.txt"))
    code, _, err = voltaire(tmp_path, *keys, config=config)
    assert (code, err) == (1, saying("no keys yet", "never logged in"))
