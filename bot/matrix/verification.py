"""Devices verified by emoji: begun in an owner's app while `voltaire matrix verify` waits in a terminal.

The terminal and the bot are two processes. They exchange one value of the bot's state, which the terminal reads and
writes by the bot's control socket. nio's Sas does the cryptography, of single devices: nio has no cross-signing.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple

from nio.crypto.sas import Sas
from nio.exceptions import LocalProtocolError

from bot.commands.context import HandlerContext
from bot.matrix.encryption import FAULTS, Encryption
from bot.matrix.homeserver import HomeserverError, MatrixJson

log = logging.getLogger(__name__)

EVENTS = "m.key.verification."
VERIFICATION = "matrix-verification"
LOOK_SECONDS = 0.5
# What nio calls v1 is computed like v2 (https://spec.matrix.org/v1.16/client-server-api/#mac-calculation):
# apps offer v2 only, another nio v1 only.
MAC_V2 = "hkdf-hmac-sha256.v2"
NOT_NOW = "run `voltaire matrix verify` on the bot's machine first"


class VerificationTalk(NamedTuple):
    """The value by which terminal and bot exchange the progress of a verification.

    `until`: when the terminal stops waiting, in seconds since the epoch. `told`: the emoji that are
    shown, or why it failed.
    """

    until: float
    stage: Literal["waiting", "shown", "same", "different", "verified", "failed"] = "waiting"
    device: str = ""
    told: str = ""


class DeviceVerification:
    """The bot's side of a verification: its answers to the events of an owner's app."""

    def __init__(self, encryption: Encryption, context: HandlerContext) -> None:
        self._encryption = encryption
        self._context = context
        self._key_values = context.store.key_values

    def _is_owner(self, user: str) -> bool:
        return user in self._context.access.owners

    async def take(self, raw: MatrixJson) -> None:
        """Handle an event of a verification, after nio's machine has seen it. Raises StoreError."""
        try:
            await self._take(raw)
        except HomeserverError as error:
            await self._tell("failed", told=str(error))
        except (LocalProtocolError, AttributeError, *FAULTS):
            log.warning("an event of a verification cannot be read", exc_info=True)

    async def _take(self, raw: MatrixJson) -> None:
        kind, sender, content = raw["type"].removeprefix(EVENTS), raw["sender"], raw["content"]
        transaction = str(content["transaction_id"])
        sas = self._encryption.machine.key_verifications.get(transaction)
        if sas is not None and sas.other_olm_device.user_id != sender:
            return
        if kind in ("request", "start"):
            device = str(content["from_device"])
            if not self._is_owner(sender) or not await self._awaited():
                cancelled = {"code": "m.user", "reason": NOT_NOW}
                await self._send("cancel", sender, device, transaction, cancelled)
            elif kind == "request":
                me = {"from_device": self._encryption.device, "methods": ["m.sas.v1"]}
                await self._send("ready", sender, device, transaction, me)
            else:
                await self._accept(raw, transaction)
        elif kind == "key" and sas and sas.established_sas:
            await self._encryption.tend()  # sends our key
            signs = [f"{sign} {name}" for sign, name in sas.get_emoji()]
            emoji = "emoji" in sas.short_auth_string
            shown = ", ".join(signs if emoji else map(str, sas.get_decimals()))
            await self._tell("shown", sas.other_olm_device.id, shown)
            self._context.start(self._answered(sas, shown))
        elif kind == "mac" and sas and sas.sas_accepted:
            await self._finish(sas)
        elif kind == "cancel" and self._is_owner(sender) and await self._awaited():
            await self._tell("failed", told=f"the app has ended it ({content.get('reason')})")

    async def _accept(self, raw: MatrixJson, transaction: str) -> None:
        verifications = self._encryption.machine.key_verifications
        if transaction not in verifications:  # of a device that was not looked up yet
            await self._encryption.tend()
            self._encryption.receive_event(raw)
        if sas := verifications.get(transaction):
            accepted = sas.accept_verification()
            if MAC_V2 in sas.mac_methods:
                sas.chosen_mac_method = MAC_V2
                accepted.content["message_authentication_code"] = MAC_V2
            await self._encryption.send_to_device(accepted)

    async def _answered(self, sas: Sas, shown: str) -> None:
        """Wait for the person's answer about these emoji, and act on it."""
        talk = await self._talk()
        while talk and (talk.stage, talk.told) == ("shown", shown) and time.time() < talk.until:
            await asyncio.sleep(LOOK_SECONDS)
            talk = await self._talk()
        if sas.canceled:
            return
        try:
            if talk and (talk.stage, talk.told) == ("same", shown):
                sas.accept_sas()
                await self._encryption.send_to_device(sas.get_mac())
                if sas.verified:  # else once the app says so, too
                    await self._finish(sas)
            else:
                sas.reject_sas()
                await self._encryption.send_to_device(sas.get_cancellation())
                await self._tell("failed", told="the emoji were not the same")
        except HomeserverError as error:
            await self._tell("failed", told=str(error))

    async def _finish(self, sas: Sas) -> None:
        """Both sides have confirmed, and the app has sent its MAC."""
        machine, device = self._encryption.machine, sas.other_olm_device
        machine.key_verifications.pop(sas.transaction_id, None)
        # nio looks at the latter too late.
        if sas.canceled or device.id not in sas.verified_devices:
            machine.unverify_device(device)
            await self._tell("failed", told="the app's key is another one")
            return
        machine.verify_device(device)
        log.info("the device %s of %s is verified", device.id, device.user_id)
        await self._tell("verified", device.id)
        await self._send("done", device.user_id, device.id, sas.transaction_id, {})

    async def _send(
        self, kind: str, user: str, device: str, transaction: str, content: MatrixJson
    ) -> None:
        whole = {**content, "transaction_id": transaction}
        await self._encryption.to_device(f"{EVENTS}{kind}", {user: {device: whole}})

    async def _talk(self) -> VerificationTalk | None:
        return await self._key_values.get(VERIFICATION, VerificationTalk)

    async def _awaited(self) -> bool:
        """Whether `voltaire matrix verify` is waiting."""
        talk = await self._talk()
        return talk is not None and time.time() < talk.until

    async def _tell(
        self, stage: Literal["shown", "verified", "failed"], device: str = "", told: str = ""
    ) -> None:
        """Tell the terminal, unless it was told of an end already."""
        talk = await self._talk()
        if talk and talk.stage not in ("verified", "failed"):
            new = talk._replace(stage=stage, device=device or talk.device, told=told)
            await self._key_values.put(VERIFICATION, new)


async def verified_in_terminal(
    act: Callable[..., Awaitable[Any]],
    seconds: float,
    say: Callable[[str], None],
    confirm: Callable[[str], bool],
) -> str:
    """Wait for a verification and have the person compare; "" once it is done, else why it failed.

    `act` calls a function of bot.acts in the process of the bot.
    """
    await act("put-fact", key=VERIFICATION, value=VerificationTalk(time.time() + seconds))
    try:
        async with asyncio.timeout(seconds):
            while found := await act("fact", key=VERIFICATION):
                talk = VerificationTalk(*found)
                match talk.stage:
                    case "shown":
                        say(f"The device {talk.device} shows:\n\n    {talk.told}\n")
                        same = await asyncio.to_thread(confirm, "Does your app show the same?")
                        answer: Literal["same", "different"] = "same" if same else "different"
                        answered = talk._replace(stage=answer)
                        await act("put-fact", key=VERIFICATION, old=talk, value=answered)
                    case "verified":
                        say(f"Verified: the device {talk.device}.")
                        return ""
                    case "failed":
                        return talk.told
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        pass
    finally:
        await act("forget-fact", key=VERIFICATION)
    return "nobody has begun it in time"
