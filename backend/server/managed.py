"""The supervised server as the control API sees it, and which profile it runs when.

The schedule decides; a manual choice is valid until the schedule's next switch.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path

from backend.config import BackendConfig, ScheduledProfile
from backend.files import replace_text
from backend.models.profile import Profile, ProfileError, is_file, load, locate, names
from backend.protocol import (
    CompletionReport,
    Endpoint,
    Phrase,
    Prefix,
    ProfileSummary,
    ServerStatus,
)
from backend.server.chat_states import ChatStates, chat_hash
from backend.server.supervisor import Supervisor, SwitchFailed
from backend.state import BackendState, NotReady

READ_AHEAD = timedelta(minutes=2)  # before a switch, the next model is read into the page cache
CHUNK_BYTES = 64 << 20
CHOICE = "profile.json"  # in the state folder


class ManagedServer:
    def __init__(self, state: BackendState) -> None:
        self.state, self.config = state, state.config
        self.supervisor = Supervisor(state)
        if state.config.lend_to_others:
            state.sampler.listeners.append(self.supervisor.lending.sample)
        self._switches: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        first = starting_profile(self.config, self.state.now())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.supervisor.keep_lent())
                group.create_task(self.supervisor.run(first))
                group.create_task(self.keep_schedule())
        finally:
            for switching in self._switches:
                switching.cancel()

    async def endpoint(self) -> Endpoint:
        run, status = self.supervisor.server_run, self.state.status.current
        if run is None or not run.serves:
            sentence = Phrase("The model server is {state}.", state=Phrase(status.state))
            raise NotReady(status.reason or sentence)
        return Endpoint(
            url=run.launch.url,
            api_key=run.launch.api_key,
            model=run.profile.name,
            n_ctx=status.n_ctx or run.profile.context,
            profile=run.profile.name,
            sampling=dict(run.profile.sampling),
            template=dict(run.profile.template),
            useful_context=run.profile.useful_context,
            vision=run.vision,
            picture_pixels=run.launch.picture_pixels,
            audio=run.audio,
            saves_prompts=run.chats is not None and run.chats.active,
            rolls_back=run.launch.rolls_back,
            unloads=self.supervisor.lending.lend is not None,
            keeps_prompts=run.profile.flag("--cache-ram") != "0",
        )

    async def with_vision_tested(self, endpoint: Endpoint) -> Endpoint:
        return endpoint  # llama-server itself says what it accepts

    def changes(self) -> AsyncIterator[ServerStatus]:
        return self.state.status.changes()

    def restart(self) -> None:
        self.supervisor.restart()

    async def switch(self, name: str) -> None:
        """Switch the profile and remember the choice; this completes even if the client disconnects."""
        if self.supervisor.lending.lend:
            raise SwitchFailed(self.supervisor.lending.reason)

        async def switch_and_keep() -> None:
            await self.supervisor.switch(name)
            save_choice(self.config, name, self.state.now())

        def ended(switching: "asyncio.Task[None]") -> None:
            self._switches.discard(switching)
            if not switching.cancelled():
                switching.exception()  # mark as retrieved: it is raised below if the client is connected

        switching = asyncio.create_task(switch_and_keep())
        self._switches.add(switching)
        switching.add_done_callback(ended)
        await asyncio.shield(switching)

    async def lend(self, seconds: float) -> Phrase:
        """Lend the card for that time, 0 to take it back; return a sentence on what was done."""
        lending, pid = self.supervisor.lending, self.state.status.current.pid
        if not seconds and not lending.lend:
            return Phrase("The card is not lent.")
        lending.begin(seconds)
        if not seconds:
            return Phrase("The model is being loaded again.")
        return await lending.unloaded(pid)

    def warm(self, prefix: Prefix) -> None:
        run = self.supervisor.server_run
        if self.state.prefixes.register(prefix) and run:
            run.new_prefix.set()

    def logs(self, lines: int) -> list[str]:
        run = self.supervisor.server_run
        return run.process.log.lines(lines) if run and run.process else []

    def completed(self, report: CompletionReport) -> None:
        """Pass a report on; the stall detector reads the errors from the speedometer."""
        if chats := self._chats:
            chats.completed(report)

    @property
    def _chats(self) -> ChatStates | None:
        run = self.supervisor.server_run
        return run.chats if run else None

    def restoring(self, chat: str) -> Coroutine[None, None, None] | None:
        """What to await before a request of this chat."""
        return self._chats.restoring(chat) if self._chats else None

    async def save(self, chat: str) -> None:
        """Save the prompt of a chat that has just been read."""
        if chats := self._chats:
            await chats.save(chat)

    async def forget(self, chat: str) -> None:
        """Delete the chat's files, of every model."""
        if chats := self._chats:
            chats.live.pop(chat, None)
            await chats.flushed()
        for file in self.config.slots_folder.glob(f"{chat_hash(chat)}-*.chat"):
            file.unlink(missing_ok=True)

    def profiles(self) -> list[ProfileSummary]:
        """All profiles that can be read, those whose model is here first."""
        found = map(self.readable, names(self.config.profiles))
        summaries = [
            ProfileSummary(
                name=profile.name,
                title=profile.title,
                good=profile.good,
                bad=profile.bad,
                here=locate(profile.model, self.config.models_folder).is_file(),
                verified=profile.verified,
                decode_tok_s=profile.reference.decode_tok_s,
                source=profile.reference.source,
                sees=profile.mmproj is not None,
            )
            for profile in found
            if profile
        ]
        return sorted(summaries, key=lambda summary: not summary.here)

    async def keep_schedule(self) -> None:
        """Switch profiles at the scheduled times. The schedule may change while this runs."""
        since, ahead, longest = self.state.now(), "", self.state.timing.look_schedule
        while True:
            config = self.config
            schedule = config.reschedule() if config.reschedule else config.schedule
            due = next_switch(schedule, since)
            # Sleep briefly: the clock may be set, a laptop may suspend, the schedule may be edited.
            left = (due.at - self.state.now()).total_seconds() if due else longest
            await asyncio.sleep(min(max(left, 0), longest))
            now = self.state.now()
            if due and due.profile != ahead and now >= due.at - READ_AHEAD:
                ahead = due.profile
                profile = self.readable(ahead)
                if profile and ahead != self.supervisor.profile:
                    files = [locate(source, config.models_folder) for source in profile.sources]
                    await asyncio.to_thread(read_ahead, files)
            last = last_switch(schedule, now)
            if last and last.at > since and last.profile != self.supervisor.profile:
                try:
                    await self.supervisor.switch(last.profile)
                except (SwitchFailed, ProfileError) as error:
                    self.state.alerts.add("schedule", "warning", Phrase.of(error))
            since = now

    def readable(self, name: str) -> Profile | None:
        """The profile, or None if it does not exist or cannot be read."""
        try:
            return load(name, self.config.profiles)
        except ProfileError:
            return None


# -- which profile when ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScheduledSwitch:
    at: datetime
    profile: str


def next_switch(schedule: Sequence[ScheduledProfile], now: datetime) -> ScheduledSwitch | None:
    """The next switch after `now` (aware, in the schedule's zone)."""
    later = [each for each in switches_around(schedule, now) if each.at > now]
    return min(later, key=lambda each: each.at, default=None)


def last_switch(schedule: Sequence[ScheduledProfile], now: datetime) -> ScheduledSwitch | None:
    """The last switch at or before `now`."""
    earlier = [each for each in switches_around(schedule, now) if each.at <= now]
    return max(earlier, key=lambda each: each.at, default=None)


def switches_around(
    schedule: Sequence[ScheduledProfile], now: datetime
) -> Iterator[ScheduledSwitch]:
    """Yield the scheduled switches of the profile from yesterday to tomorrow."""
    for entry in schedule:
        clock = time.fromisoformat(entry.at)
        for days in (-1, 0, 1):
            day = now.date() + timedelta(days=days)
            yield ScheduledSwitch(datetime.combine(day, clock, now.tzinfo), entry.profile)


def save_choice(config: BackendConfig, profile: str, now: datetime) -> None:
    """Store the profile that a person chose, so that it survives a restart of the backend."""
    kept = {"profile": profile, "configured": config.profile, "at": now.isoformat()}
    replace_text(config.state_dir / CHOICE, json.dumps(kept))


def chosen_profile(config: BackendConfig, now: datetime) -> str:
    """The profile to start with: the manual choice or the schedule's last switch, whichever is newer.

    Without either it is the configured profile; changing the configuration ends a manual choice.
    """
    last = last_switch(config.schedule, now)
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads((config.state_dir / CHOICE).read_text("utf-8"))
        newer = last is None or datetime.fromisoformat(kept["at"]) > last.at
        if newer and kept["configured"] == config.profile:
            return str(kept["profile"])
    return last.profile if last else config.profile


def starting_profile(config: BackendConfig, now: datetime) -> str:
    """The profile or GGUF that a start serves; the configured one if the chosen one no longer exists."""
    first = config.start_with or chosen_profile(config, now)
    return first if is_file(first) or first in names(config.profiles) else config.profile


def read_ahead(paths: Sequence[Path]) -> None:
    """Read files into the page cache, so that loading them is fast. Blocks."""
    for path in paths:
        with suppress(OSError), path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while file.read(CHUNK_BYTES):
                pass
