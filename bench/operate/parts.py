"""The page, Matrix and voice beside a site's Telegram: switched on together, and what serves them killed."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.operate.site import ANSWER, BOT, QUESTION, Site, StepFailed
from bench.operate.steps import Course, Step
from bot.localgram import Message, is_final
from bot.service import ALERT_MARKS
from fakes import recordings, whisper_toy
from fakes.booted import SHARED
from fakes.matrix_person import MatrixPerson, matrix_person
from fakes.synapse import PASSWORD, running_synapse

PAGE, OWN_PAGE = "127.0.0.1:8766", "127.0.0.1:8767"
MODEL = "ggml-toy.bin"
PART_SECONDS = 240.0
LONG = (50.0, 50.0, 50.0)  # seconds of tones: whisper.cpp is busy with them for a while
HEARS, SPEAKS = "whisper", "espeak-ng"
# A short process is only caught by looking all the time.
CATCH = "timeout 120 sh -c 'until p=$(pgrep {name}) && kill -KILL {pid} 2>/dev/null; do :; done'"


@dataclass
class Parts:
    """`account` is the bot's at the homeserver `url`; `room` is where `person` talks with it."""

    it: Site
    url: str
    account: str
    person: MatrixPerson
    room: str = ""

    def steps(self) -> Mapping[str, Step]:
        return {
            "page, Matrix and voice": self.switch_on,
            "kill what hears": self.ends_while(HEARS, "$p"),
            "kill the bot that hears": self.ends_while(HEARS, ""),
            "kill what speaks": self.ends_while(SPEAKS, "$p"),
            "kill the bot that speaks": self.ends_while(SPEAKS, ""),
            "kill the page": self.own_page,
        }

    async def talk(self) -> None:
        """The page answers, and so does the bot, on Matrix and to a voice message. Raises StepFailed."""
        await self.page_answers(PAGE)
        await self.matrix_answers()
        said = await self.spoken(recordings.spoken(QUESTION * 3))
        reply = (await self.replied(said))[-1]
        if not any(m.text.startswith("toy ") for m in self._later(said)):
            raise StepFailed("a voice message was not heard")
        if not (reply.media and reply.media.kind == "voice"):
            raise StepFailed(f"a voice message was answered by {reply.text!r}")

    # -- each of them -----------------------------------------------------------

    async def page_answers(self, at: str) -> None:
        """The page opens with its key."""
        key = self.it.path(f"{self.it.kind.state}/run/page.key")
        end, found = time.monotonic() + PART_SECONDS, ""
        while time.monotonic() < end:
            try:
                url = f"http://{at}/?key={key.read_text().strip()}"
                jar = aiohttp.CookieJar(unsafe=True)
                async with aiohttp.ClientSession(cookie_jar=jar) as http, http.get(url) as answer:
                    if answer.status == 200:
                        return
                    found = str(answer.status)
            except (aiohttp.ClientError, OSError) as error:
                found = str(error)
            await asyncio.sleep(0.2)
        raise StepFailed(f"the page at {at} does not open: {found}")

    async def matrix_answers(self) -> None:
        before = len(self._answers())
        await self.person.say(self.room, QUESTION)
        try:
            async with asyncio.timeout(PART_SECONDS):
                await self.person.until(lambda: len(self._answers()) > before)
        except TimeoutError:
            raise StepFailed("no answer on Matrix") from None
        await asyncio.sleep(1.0)  # in which a second one would come
        if len(self._answers()) != before + 1:
            raise StepFailed("more than one answer on Matrix")

    def _answers(self) -> list[str]:
        return [text for text in self.person.finals(self.room) if ANSWER.search(text)]

    async def spoken(self, recording: bytes) -> Message:
        self.it.count += 1
        return await self.it.reader.person.send_file("voice", recording, seconds=1)

    async def replied(self, said: Message) -> list[Message]:
        """What the bot answered, whatever it is; StepFailed where nothing comes."""

        def there(said: Message) -> list[Message]:
            return [m for m in self._later(said) if is_final(m)]

        if not await self.it.reader.answered(said, there, PART_SECONDS):
            raise StepFailed("no answer to a voice message")
        await asyncio.sleep(1.0)  # in which a second one would come
        return there(said)

    def _later(self, said: Message) -> list[Message]:
        """What the bot said since, but alerts: a busy machine's model is slow."""
        messages = self.it.reader.chat.messages.values()
        mine = [m for m in messages if m.id > said.id and m.sender.is_bot]
        return [m for m in mine if not m.text.startswith(tuple(ALERT_MARKS.values()))]

    # -- steps --------------------------------------------------------------------

    async def switch_on(self, it: Site, _: Course) -> str:
        wheel = it.releases.wheel("this") if it.kind.wheel else ""
        await it.done(it.kind.extras.format(shared=SHARED, wheel=wheel), user=it.kind.user)
        owner = await it.done(f"stat -c %U {it.kind.state}")
        whisper_toy.write(it.machine.shared / MODEL)
        folder = f"{it.kind.state}/models/voice"
        page = f'[page]\\nlisten = "{PAGE}"\\n'
        await it.done(
            f"chmod 755 {SHARED}; install -d -o {owner} -m 700 {it.kind.state}/models {folder};"
            f" install -o {owner} -m 600 {SHARED}/{MODEL} {folder}; printf '{page}' >> {it.kind.config}"
        )
        setup = it.voltaire(
            f"setup --yes --homeserver {self.url} --matrix-user {self.account}"
            f" --matrix-password '{PASSWORD}' --matrix-owner {self.person.id}"
        )
        await asyncio.gather(setup, self._join())
        await it.systemctl(f"restart {BOT}")
        await it.active()
        await it.reader.person.send("/settings")
        shown = await it.reader.person.next_message(where=lambda m: m.keyboard)
        await it.reader.person.press(shown, "to voice messages")
        it.also.append(self.talk)
        return await it.talk()

    async def _join(self) -> None:
        await self.person.until(lambda: self.person.client.invited_rooms)
        (self.room,) = self.person.client.invited_rooms
        await self.person.client.join(self.room)

    def ends_while(self, name: str, pid: str) -> Step:
        """A long voice message; as soon as a process `name` runs, it or the bot is killed. One answer comes."""

        async def step(it: Site, _: Course) -> str:
            command = CATCH.format(name=name, pid=pid or await it.pid("bot"))
            catching = asyncio.create_task(it.done(command))
            said = await self.spoken(recordings.tones(*LONG))
            await catching
            answers = await self.replied(said)
            await it.active()
            if len(answers) != 1:
                raise StepFailed(f"the answers were {[m.text for m in answers]}")
            return f"one answer; {await it.talk()}"

        return step

    async def own_page(self, it: Site, _: Course) -> str:
        """`voltaire page` beside the bot is killed, and opens once more."""
        for signal in ("KILL", "TERM"):
            pid = f"/tmp/page-{signal}"
            script = f"echo $$ > {pid}; exec {it.kind.program} page --no-open --listen {OWN_PAGE}"
            running = asyncio.create_task(it.sh(script, user=it.kind.user))
            try:
                await self.page_answers(OWN_PAGE)
            finally:
                await it.done(f"kill -{signal} $(cat {pid}); rm {pid}")
                code, said = await running
            if "Traceback" in said:
                raise StepFailed(f"it ended with {code}: {said}")
        return f"it opens again; {await it.talk()}"


@asynccontextmanager
async def parts(it: Site, folder: Path) -> AsyncIterator[Parts]:
    """A homeserver with the bot's account, and its owner, who is logged in."""
    with running_synapse(folder / "synapse") as server:
        await server.answers()
        account = await server.account("voltaire")
        owner = await server.account("ada")
        async with matrix_person(server.url, owner, folder / "ada") as person:
            yield Parts(it, server.url, account, person)
