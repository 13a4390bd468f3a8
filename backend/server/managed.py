"""The supervised server as the control API sees it, and its switches by the clock."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from backend.config import ScheduledProfile
from backend.control.api import NotReady
from backend.models.profile import ProfileError, load, locate, names
from backend.models.profile_schedule import (
    AHEAD,
    ManualChoice,
    last_switch,
    next_switch,
    read_ahead,
)
from backend.protocol import CompletionReport, Endpoint, Prefix, ProfileSummary, ServerStatus
from backend.server.launch import models_folder
from backend.server.supervisor import Supervisor, SwitchFailed
from backend.state import BackendState


class Managed:
    """The supervised server as the API sees it."""

    def __init__(self, state: BackendState) -> None:
        self.state = state
        self.choice = ManualChoice(state.config.state_dir / "profile.json")
        self.supervisor = Supervisor(state)
        self._switches: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        config = self.state.config
        first = self.choice.profile(config, self._now())
        if first not in names(config.profiles):
            first = config.profile  # what was chosen once is gone
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.supervisor.run(first))
                group.create_task(self.keep_schedule())
        finally:
            for switching in self._switches:
                switching.cancel()

    async def endpoint(self) -> Endpoint:
        life, status = self.supervisor.life, self.state.status.current
        if life is None or not life.serves:
            raise NotReady(status.reason or f"The model server is {status.state}.")
        return Endpoint(
            url=life.launch.url,
            api_key=life.launch.api_key,
            model=life.profile.name,
            n_ctx=status.n_ctx or life.profile.context,
            profile=life.profile.name,
            sampling=dict(life.profile.sampling),
            template=dict(life.profile.template),
            useful_context=life.profile.useful_context,
            vision=life.vision,
        )

    def changes(self) -> AsyncIterator[ServerStatus]:
        return self.state.status.changes()

    def restart(self) -> None:
        self.supervisor.restart()

    async def switch(self, name: str) -> None:
        """Goes on to its end, the way back included, also when whoever asked has hung up."""
        switching = asyncio.create_task(self._switch(name))
        self._switches.add(switching)
        switching.add_done_callback(self._switched)
        await asyncio.shield(switching)

    async def _switch(self, name: str) -> None:
        await self.supervisor.switch(name)
        self.choice.save(name, self.state.config.profile, self._now())

    def _switched(self, switching: "asyncio.Task[None]") -> None:
        self._switches.discard(switching)
        if not switching.cancelled():
            switching.exception()  # told to whoever asked, where somebody still listens

    async def keep_schedule(self) -> None:
        """Switch by the clock; what was chosen by hand holds until then. The schedule may change."""
        since, ahead, most = self._now(), "", self.state.timing.look_schedule
        while True:
            schedule = self._schedule()
            due = next_switch(schedule, since)
            # In short pieces: the clock may be set, a laptop may sleep, the schedule may be edited.
            left = (due.at - self._now()).total_seconds() if due else most
            await asyncio.sleep(min(max(left, 0), most))
            now = self._now()
            if due and due.profile != ahead and now >= due.at - AHEAD:
                ahead = due.profile
                await self._read_ahead(ahead)
            last = last_switch(schedule, now)
            if last and last.at > since:
                await self._switch_by_clock(last.profile)
            since = now

    def _schedule(self) -> tuple[ScheduledProfile, ...]:
        config = self.state.config
        return config.reschedule() if config.reschedule else config.schedule

    async def _read_ahead(self, name: str) -> None:
        if self.supervisor.profile != name:
            await asyncio.to_thread(read_ahead, self._files(name))

    async def _switch_by_clock(self, name: str) -> None:
        if self.supervisor.profile == name:
            return
        try:
            await self.supervisor.switch(name)
        except (SwitchFailed, ProfileError) as error:
            self.state.news("schedule", "warning", str(error))

    def _files(self, name: str) -> list[Path]:
        """A profile's model and its draft; none of a profile that is gone."""
        config = self.state.config
        try:
            profile = load(name, config.profiles)
        except ProfileError:
            return []
        sources = [source for source in (profile.model, profile.draft) if source]
        return [locate(source, models_folder(config)) for source in sources]

    def _now(self) -> datetime:
        return datetime.fromtimestamp(
            self.state.timing.clock(), ZoneInfo(self.state.config.timezone)
        )

    def warm(self, prefix: Prefix) -> None:
        if self.state.register.add(prefix):
            self.supervisor.tend()

    def logs(self, lines: int) -> list[str]:
        life = self.supervisor.life
        return life.process.log.lines(lines) if life and life.process else []

    def heard(self, report: CompletionReport) -> None:
        """The watch reads errors from the speedometer."""

    def sign(self, tokens: int) -> None:
        self.state.signs.tokens += 1

    def profiles(self) -> list[ProfileSummary]:
        """All that can be read, those whose model is here first."""
        cards = [card for name in names(self.state.config.profiles) if (card := self._card(name))]
        return sorted(cards, key=lambda card: not card.here)

    def _card(self, name: str) -> ProfileSummary | None:
        config = self.state.config
        try:
            profile = load(name, config.profiles)
        except ProfileError:
            return None
        return ProfileSummary(
            name=name,
            title=profile.title,
            good=profile.good,
            bad=profile.bad,
            here=locate(profile.model, models_folder(config)).is_file(),
            verified=profile.verified,
            decode_tok_s=profile.reference.decode_tok_s,
            source=profile.reference.source,
        )
