"""What an owner may change on the page: the same as in the chat, in the same rows of the database.

Each change is a transaction of its own, which the running bot finds, as those of the command line: where either
is killed, it counts once or not at all.
"""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from agent.errors import AgentError
from agent.events import Decision
from agent.memory.notes import ChatMemory
from agent.store import Store
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from bot.commands.settings import find_timezone, setting_values
from bot.page.views import shown
from bot.settings import Settings
from bot.state import open_state

if TYPE_CHECKING:
    from agent.schedule.planner import Planner

BY = "owner's page"
PAIRING_SECONDS = 3600.0
Text = Annotated[str, StringConstraints(max_length=4000)]


class NothingChanged(AgentError):
    """Nothing was changed; `str` says why."""


class Pressed(BaseModel):
    """The fields of all changes; each uses some of them."""

    model_config = ConfigDict(extra="forbid")

    chat: Text = ""
    id: Text = ""
    number: Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)] = 0
    text: Text = ""
    on: bool = False
    decision: Decision = "denied"
    setting: Text = ""


ApplyChange = Callable[[Store, Pressed], Coroutine[Any, Any, str]]


class Changes:
    def __init__(self, settings: Settings, backend: BackendClient) -> None:
        self._settings = settings
        self._backend = backend
        self._known: dict[str, ApplyChange] = {
            "stop": self.stop,
            "decide": self.decide,
            "revoke": self.revoke,
            "show-again": self.show_again,
            "note-add": self.add_note,
            "note-edit": self.edit_note,
            "note-pin": self.pin_note,
            "note-delete": self.delete_note,
            "note-restore": self.restore_note,
            "job-pause": self.pause_job,
            "job-run": self.run_job,
            "job-edit": self.edit_job,
            "job-remove": self.remove_job,
            "pair": self.pair,
            "let-go": self.let_go,
            "set": self.set,
            "freeze": self.freeze,
            "model": self.use_model,
        }

    async def post(self, request: web.Request) -> web.Response:
        """Make a change; answers {"told": what happened}, or 409 and one sentence where nothing changed."""
        change = self._known.get(request.match_info["change"])
        if change is None:
            raise web.HTTPNotFound(text="There is no such change.")
        try:
            pressed = Pressed.model_validate_json(await request.read())
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise web.HTTPBadRequest(text=f"{where}: {first['msg']}") from None
        try:
            async with open_state(self._settings) as store:
                told = await change(store, pressed)
        except (AgentError, BackendUnavailable, BackendRefused, ValueError) as error:
            raise web.HTTPConflict(text=str(error)) from None
        return shown({"told": told})

    # -- turns and questions ---------------------------------------------------

    async def stop(self, store: Store, pressed: Pressed) -> str:
        if not await store.leases.request_stop(pressed.chat):
            raise NothingChanged("Nothing runs in that chat any more.")
        return "It is asked to stop."

    async def decide(self, store: Store, pressed: Pressed) -> str:
        """The first answer counts, wherever it was given."""
        at = store.clock()
        if await store.approvals.decide(pressed.id, pressed.decision, at, BY) is None:
            decided = await store.approvals.decided(pressed.id)
            if decided is None:
                raise NothingChanged("That question has expired, or is not what was asked.")
            state, by, _ = decided
            raise NothingChanged(f"That was decided before: {state}{f' by {by}' if by else ''}.")
        told = {"once": "Allowed once.", "chat": "Allowed in this chat.", "denied": "Denied."}
        return told[pressed.decision]

    async def revoke(self, store: Store, pressed: Pressed) -> str:
        if not await store.approvals.revoke(pressed.chat, pressed.id, BY):
            raise NothingChanged("That permission is gone already.")
        return "Taken back."

    async def show_again(self, store: Store, pressed: Pressed) -> str:
        if not await store.outbox.send_again(pressed.number):
            raise NothingChanged("That message is no longer in doubt.")
        return "It is sent once more."

    # -- notes -----------------------------------------------------------------

    async def add_note(self, store: Store, pressed: Pressed) -> str:
        if await store.chats.get(pressed.chat) is None:
            raise NothingChanged("There is no such chat.")
        memory = ChatMemory(store, pressed.chat, self._settings.agent.timezone)
        return await memory.remember(pressed.text, "")

    async def edit_note(self, store: Store, pressed: Pressed) -> str:
        if not pressed.text.strip():
            raise NothingChanged("A note cannot be empty: delete it instead.")
        done = await store.notes.correct(pressed.chat, pressed.number, pressed.text)
        return changed(done, "Changed.")

    async def pin_note(self, store: Store, pressed: Pressed) -> str:
        done = await store.notes.pin(pressed.chat, pressed.number, pressed.on)
        return changed(done, "Pinned." if pressed.on else "No longer pinned.")

    async def delete_note(self, store: Store, pressed: Pressed) -> str:
        done = await store.notes.delete(pressed.chat, pressed.number)
        return changed(done, "Deleted; it can be restored for some days.")

    async def restore_note(self, store: Store, pressed: Pressed) -> str:
        return changed(await store.notes.restore(pressed.chat, pressed.number), "Restored.")

    # -- jobs ------------------------------------------------------------------

    async def _planner(self, store: Store, chat: str) -> "Planner":
        from bot.composition import planner, zone_of  # a job is rarely changed here

        async def profiles() -> list[str]:
            return [profile.name for profile in await self._backend.profiles()]

        zone = zone_of(await store.chats.get(chat), self._settings)
        return planner(self._settings, store, chat, zone, profiles)

    async def pause_job(self, store: Store, pressed: Pressed) -> str:
        planner = await self._planner(store, pressed.chat)
        await planner.pause(pressed.number, paused=pressed.on)
        return "Paused." if pressed.on else "It goes on."

    async def run_job(self, store: Store, pressed: Pressed) -> str:
        await (await self._planner(store, pressed.chat)).run_now(pressed.number)
        return "It is due now; the bot takes it up within half a minute."

    async def edit_job(self, store: Store, pressed: Pressed) -> str:
        planner = await self._planner(store, pressed.chat)
        job = await planner.edit(pressed.number, pressed.text)
        return f"Changed: {planner.describe(job)}"

    async def remove_job(self, store: Store, pressed: Pressed) -> str:
        await (await self._planner(store, pressed.chat)).remove(pressed.number)
        return "Deleted."

    # -- people, settings, model -----------------------------------------------

    async def pair(self, store: Store, pressed: Pressed) -> str:
        """A code that lets in whoever sends it to the bot: once, within an hour."""
        return await store.people.make_code("member", PAIRING_SECONDS)

    async def let_go(self, store: Store, pressed: Pressed) -> str:
        source, _, person = pressed.id.partition(":")
        if not await store.people.remove(source, person):
            raise NothingChanged("Nobody is paired under that name.")
        return "Let go: the bot no longer answers them, within a quarter of a minute."

    async def set(self, store: Store, pressed: Pressed) -> str:
        """Change a setting of a chat, as /settings and /timezone do."""
        if await store.chats.get(pressed.chat) is None:
            raise NothingChanged("There is no such chat.")
        if pressed.setting == "timezone":
            zone = find_timezone(pressed.text) if pressed.text else ""
            if zone is None:
                raise NothingChanged(f"{pressed.text!r} is no time zone, such as Europe/Berlin.")
            await store.chats.set_timezone(pressed.chat, zone, BY)
            await (await self._planner(store, pressed.chat)).move_to_zone()
            return "Changed; jobs at times of day follow."
        values = setting_values().get(pressed.setting, {})
        if pressed.text not in values:
            raise NothingChanged("There is no such setting.")
        await store.chats.set(pressed.chat, BY, **{pressed.setting: values[pressed.text]})
        return "Changed from the next message on."

    async def freeze(self, store: Store, pressed: Pressed) -> str:
        turns, grants = await store.freeze.freeze(BY)
        return f"Frozen: {turns} turns stopped, {grants} standing permissions ended. `voltaire thaw` ends it."

    async def use_model(self, store: Store, pressed: Pressed) -> str:
        facts = {"act": "model", "to": pressed.id, "by": BY}
        await store.ledger.record("admin", pressed.chat, **facts)
        async for _ in self._backend.use_profile(pressed.id):
            pass
        return f"{pressed.id} serves now."


def changed(done: bool, told: str) -> str:
    if not done:
        raise NothingChanged("There is no such note any more.")
    return told
