"""What an owner may change on the page: the same as in the chat, by the process that holds the state.

Each change is a transaction of its own: where that process is killed, it counts once or not at all.
"""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agent.errors import AgentError
from agent.events import Decision
from agent.memory.notes import ChatMemory
from agent.store import Store
from bot.acts import MOST_DATA
from bot.commands.settings import find_timezone, setting_values
from bot.holder import Holder, planner_of

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
    data: Annotated[str, StringConstraints(max_length=MOST_DATA)] = ""


ApplyChange = Callable[["Changes", Store, Pressed], Coroutine[Any, Any, str]]


class Changes:
    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._settings = holder.settings
        self._backend = holder.backend

    async def make(self, change: str, pressed: Pressed) -> str:
        """Make a change; return a sentence on it. Raises NothingChanged, and other errors with a sentence."""
        return await CHANGES[change](self, self._holder.store, pressed)

    # -- turns and questions ---------------------------------------------------

    async def stop(self, _: Store, pressed: Pressed) -> str:
        chats = self._holder.chats
        if chats is None or not await chats.stop(pressed.chat):
            raise NothingChanged("Nothing runs in that chat any more.")
        return "It is asked to stop."

    async def decide(self, store: Store, pressed: Pressed) -> str:
        """Decide an approval, unless it was decided already, here or elsewhere."""
        agent = self._holder.agent
        if agent:
            request = await agent.approvals.decide(pressed.id, pressed.decision, BY)
        else:
            at = store.clock()
            request = await store.approvals.decide(pressed.id, pressed.decision, at, BY)
        if request is None:
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

    async def pause_job(self, _: Store, pressed: Pressed) -> str:
        planner = await planner_of(self._holder, pressed.chat)
        await planner.pause(pressed.number, paused=pressed.on)
        return "Paused." if pressed.on else "It goes on."

    async def run_job(self, store: Store, pressed: Pressed) -> str:
        """Run the job `number` now with `data`, of any chat unless `chat` says which; `id` says who asked."""
        job = await store.jobs.get(pressed.number)
        if job is None:
            raise NothingChanged(f"There is no job {pressed.number}.")
        planner = await planner_of(self._holder, pressed.chat or job.spec.chat)
        await planner.run_now(job.id, pressed.data, pressed.id or BY)
        return "It is due now." if self._holder.runs_jobs else "It is due now, once the bot runs."

    async def edit_job(self, _: Store, pressed: Pressed) -> str:
        planner = await planner_of(self._holder, pressed.chat)
        job = await planner.edit(pressed.number, pressed.text)
        return f"Changed: {planner.describe(job)}"

    async def remove_job(self, _: Store, pressed: Pressed) -> str:
        await (await planner_of(self._holder, pressed.chat)).remove(pressed.number)
        return "Deleted."

    # -- people, settings, model -----------------------------------------------

    async def pair(self, store: Store, pressed: Pressed) -> str:
        """Create a code that lets in whoever sends it to the bot, once, within an hour."""
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
            await (await planner_of(self._holder, pressed.chat)).move_to_zone()
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

    async def lend(self, store: Store, pressed: Pressed) -> str:
        """Lend the card for `number` seconds, or take it back (0)."""
        facts: dict[str, str | float] = {"act": "lend", "seconds": pressed.number, "by": BY}
        await store.ledger.record("admin", pressed.chat, **facts)
        return await self._backend.lend(pressed.number)


def changed(done: bool, told: str) -> str:
    if not done:
        raise NothingChanged("There is no such note any more.")
    return told


CHANGES: dict[str, ApplyChange] = {
    "stop": Changes.stop,
    "decide": Changes.decide,
    "revoke": Changes.revoke,
    "show-again": Changes.show_again,
    "note-add": Changes.add_note,
    "note-edit": Changes.edit_note,
    "note-pin": Changes.pin_note,
    "note-delete": Changes.delete_note,
    "note-restore": Changes.restore_note,
    "job-pause": Changes.pause_job,
    "job-run": Changes.run_job,
    "job-edit": Changes.edit_job,
    "job-remove": Changes.remove_job,
    "pair": Changes.pair,
    "let-go": Changes.let_go,
    "set": Changes.set,
    "freeze": Changes.freeze,
    "model": Changes.use_model,
    "lend": Changes.lend,
}
