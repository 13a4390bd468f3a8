"""One turn: ask the model, run what it calls, repeat until it answers.

    finished = await run_turn(Turn(...), emit)

Every finished step is in the journal before the next one starts, so a turn cut
off anywhere is taken up again by running it once more with the same journal.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from agent.aio import complete, move_on_when
from agent.errors import AgentError, ContextFull, Looping, ToolLimit, TurnError
from agent.events import Emit, GpuQueued, Notice, TurnFinished, TurnStarted
from agent.language import translated
from agent.llm.tool_call_parser import KnownTools
from agent.messages import Assistant, System, User
from agent.model import Request, ToolChoice
from agent.prompt import base_text
from agent.store.errors import StoreError
from agent.turn import texts
from agent.turn.answer_checks import (
    WHOLE,
    AnswerChecks,
    copies_tool,
    echoes,
    false_claim,
    figure,
    instructs,
    invents,
    is_call,
    is_json,
    other_unit,
    promises,
    quotes,
    refuses,
    shows_code,
    states,
    stutters,
    tells,
    unable,
    unknown_files,
    with_figure,
    with_shown,
    with_untold,
)
from agent.turn.conversation import Conversation, calls_of
from agent.turn.delegate import delegating
from agent.turn.leak_guard import LeakGuard
from agent.turn.model_caller import ModelCaller, thought_alone
from agent.turn.repetition import without_repetition
from agent.turn.step import Step, call_alone, read_step, with_words
from agent.turn.tool_runner import (
    ACTING,
    AGAIN,
    LONGEST_LETTER,
    SPEAKS_OF_FILE,
    WANTS_WORDS,
    ToolRunner,
    described,
)
from agent.turn.turn import Constrain, Ending, Turn
from agent.turn.untrusted_reader import Reader

log = logging.getLogger(__name__)

LAST_WORD_TOKENS = 1024  # of the budget, kept for the answer at a limit
COMPACTIONS = 2  # of one model call that its server finds too long
SOON = 0.9  # of the turn's seconds: no new step begins after that
LONG_CALL = 600  # characters of a small model's call, where no file is spoken of
ANSWERED = ("done", "loop", "tool_limit")  # endings with an answer of the model's, cut or not
INSTRUCTION = 6  # words in a row: so many of what a model was told to do make no answer
NO_REPETITION = {"dry_multiplier": 0.8}  # of llama.cpp: a small model's letters have an end
# What looks like a call may then be the answer, of a model that calls as its template does.
ASKS_FOR_DATA = re.compile(
    r"(?<![\w.])(?:json|xml|mcp|schema)\b|\b(?:tool|function)[ -]call", re.IGNORECASE
)
ROOM = 3 / 8  # bytes of tool output per token of the window: an eighth of it, at 3 bytes a token


async def run_turn(turn: Turn, emit: Emit) -> TurnFinished:
    """Run or resume a turn; its last event, exactly one TurnFinished, is returned as well.

    `emit` must not block. Cancelling the task (a shutdown) leaves the turn to be
    resumed from its journal; `turn.stop` finishes it (/stop). Raises StoreError when
    the journal cannot be written: the turn stays open then, too.
    """
    emit(TurnStarted(turn.journal.turn, turn.journal.chat))
    loop = TurnLoop(turn, emit)
    transcript = loop.transcript
    await transcript.open()
    loop.guard.withheld += transcript.withheld
    ending: Ending | None = None
    try:
        async with move_on_when(turn.stop), turn.time.limit(turn.limits.seconds) as time_limit:
            ending = await loop.run()
    except StoreError:
        raise
    except AgentError as error:
        ending = Ending.said(str(error), error.reason)
    except Exception as error:
        if isinstance(error, TimeoutError) and time_limit.expired():
            ending = Ending.said(loop.tools.report(loop.out_of_time), "tool_limit")
        else:
            log.exception("turn %s of %s failed", turn.journal.turn, turn.journal.chat)
            ending = Ending.said(translated(texts.BUG), "error")
    if ending is None:
        shown = f"{loop.caller.partial}\n\n{translated(texts.STOPPED)}".strip()
        ending = Ending.said(shown, "cancelled")
    ending = loop.guard.ending(ending)
    await transcript.close(stopped=ending.reason == "cancelled")
    without_tools = loop.caller.without_tools if ending.reason in ANSWERED else ""
    text = "\n\n".join(filter(None, (turn.frozen, without_tools, ending.text)))
    changes = 0
    if turn.history:
        changes = await complete(asyncio.to_thread(turn.history.end, turn.journal.turn))
    await turn.journal.finish(ending.message, text, ending.reason, transcript.usage, changes)
    finished = TurnFinished(text, ending.reason, loop.tools.calls, transcript.usage)
    emit(finished)
    return finished


class TurnLoop:
    """`run` is the loop; the other methods are its steps."""

    def __init__(self, turn: Turn, emit: Emit) -> None:
        self.transcript = Conversation(turn.journal)
        spend = partial(self.transcript.called, aside=True)
        reader = Reader(turn.model, turn.schemas, spend)
        turn = replace(turn, context=replace(turn.context, read=reader.extract))
        self.guard = LeakGuard(turn, emit)
        turn = delegating(turn, run_turn, spend, self.guard.withhold)
        self.turn = turn
        self.limits = turn.limits
        self.emit = emit = self.guard.emit
        known = KnownTools.of(turn.schemas)
        self.caller = ModelCaller(
            turn.model, known, turn.limits, turn.ready, emit, turn.answer_now, turn.time
        )
        self.tools = ToolRunner(turn, self.transcript, emit, self.guard.withhold)
        self.checks = AnswerChecks(turn.context.documents)
        self.constrain: Constrain = "never"
        self.constrained = False
        self.shelled = False  # whether a small model was asked for a command of the shell
        self.swapped = False  # and for a call of another tool than the last
        self.rewritten = False  # and for a file as the message wants it
        self.window = 0  # tokens
        self.out_of_time = translated(texts.LIMIT_SECONDS).format(count=round(turn.limits.seconds))

    async def run(self) -> Ending:
        await self.resume()
        self.constrain = await self.turn.constrain()
        self.constrained = self.constrain == "always"
        asks_for_data = ASKS_FOR_DATA.search(words := self.transcript.words())
        if asks_for_data and self.constrain in ("never", "text call"):
            self.caller.known = replace(self.caller.known, alone=True)
        if self.constrained and not SPEAKS_OF_FILE.search(words):
            self.caller.longest_call = max(LONG_CALL, 2 * len(words))
        if self.constrain != "never" and not self.transcript.results():
            await self.tools.note_files()
        if not self.transcript.results():
            if planned := await self.tools.plan_watch(words):
                return Ending.said(planned, "done")
            if self.constrained:
                await self.tools.read_pages(words)
                await self.tools.search_sent(words)
        while not (limit := self.limit_reached()):
            step = await self.next_step()
            if self.constrain == "missed call" and not (step.calls or self.tools.outcomes):
                self.constrained |= self._missed_call(step.text)
            self.tools.careful = self.constrained
            if self.turn.frozen and step.calls:
                needs = translated(texts.NEEDS_TOOL).format(call=described(step.calls[0]))
                return Ending.said(needs, "done")
            if self.constrained and not self.turn.frozen:
                step = await self.settled(step)
            if step.calls and self.tools.repeats(step.calls[0]):
                call = described(step.calls[0])
                return await self.last_word(Looping(translated(texts.LOOPING).format(call=call)))
            if step.calls:
                await self.act(step)
                if unasked := self.tools.unasked:
                    return Ending.said(unasked, "done")
            elif step.repeats:
                step = with_words(step, without_repetition(step.text))
                text = self.answer(step)
                return Ending(f"{text}\n\n{translated(texts.CIRCLING)}", "loop", step.message)
            elif advice := (
                self.checks.advice(step, self.tools.done)
                or await self.checks.citations(step)
                or await self.guard.advice(text := self.answer(step))
            ):
                await self.transcript.add(step.message)
                await self.transcript.note(advice)
            elif text:
                if self.constrained and (path := await self.tools.unchanged()):
                    text = f"{text}\n\n{translated(texts.AS_IT_WAS).format(path=path)}"
                return Ending(text, "done", step.message)
            elif step.cut_call:
                return await self.last_word(TurnError(translated(texts.UNUSABLE)))
            elif self.constrained and (said := await self.own_words()):
                return Ending(self.answer(said), "done", said.message)
            else:
                return Ending.said(translated(texts.NO_ANSWER), "error")
        return await self.last_word(limit)

    async def next_step(self) -> Step:
        """The model's next step; of a small one that counts by eye, or looks for a repository, a command."""
        if not self.constrained or self.shelled:
            return await self.ask()
        if not self.tools.counts_by_eye:
            return await (self.command() if self.tools.astray else self.ask())
        self.shelled = True
        step = await self.ask(tool_choice="required", only=frozenset({"bash"}))
        return await self.command() if any(map(self.tools.says, step.calls[:1])) else step

    def answer(self, step: Step) -> str:
        """The whole answer for the person; may be empty. When a job is due stands in it, whatever the model says."""
        text = self.tools.without_headings(self.checks.text(step, self.tools.done))
        if self.constrained and text not in self.tools.found():
            text = AGAIN.sub(r"\1", text)
        if stutters(text, self.tools.found()):
            text = self.tools.shown() or text
        told = [*self.tools.planned, *(self.tools.changed if self.constrained else ())]
        letter = self.tools.letter if self.constrained else ""
        if text and len(text) < len(letter) / 2 and len(letter) <= LONGEST_LETTER:
            text = f"{text}\n\n{letter}"
        words = self.transcript.words()
        if text and self.constrained:
            text = with_shown(text, self.tools.last_read(), words)
        return with_untold(text, told, words) if text else ""

    async def settled(self, step: Step) -> Step:
        """The step of a small model, from whose words nothing is kept but an answer that it gives from results.

        Where it has none, or goes round in a circle, it is asked once from the beginning for a command of the
        shell, which models of code know best, and then for any call.
        """
        words = self.transcript.words()
        if step.cut_call and not (self.tools.outcomes or SPEAKS_OF_FILE.search(words)):
            return await self.own_words() or step  # a letter without end
        again = any(self.tools.repeats(call) or self.tools.copies(call) for call in step.calls[:1])
        if any(self.tools.says(call) for call in step.calls[:1]):
            if not self.tools.outcomes:
                step = await self.ask(tool_choice="none")
                if not self._missed_call(step.text):
                    return step
            again = True
        if step.calls and not again:
            return step
        again |= self.tools.stumbled or await self.tools.read_rest()
        if missed := await self.tools.missed():
            made = await self.ask(tool_choice="required", only=frozenset({missed}))
            if made.calls:
                await self.act(made)
        closed = self.tools.closed if self.tools.done <= {"schedule", "remember"} else ""
        if again and (said := self.tools.letter or closed):
            return Step(Assistant(said))
        if written := await self.tools.printed():
            return await self.saved(written)
        if written := await self.tools.drafted(step.text) or await self.rewrite():
            return written
        found = any(self.tools.outcomes.values())
        if not found and (answer := await self.remembered(step)):
            return answer
        if found and self.tools.only_looked():
            if self.shelled:
                raise Looping(self.tools.report(translated(texts.NO_RESULT)))
        elif found:
            if not (again or self.tools.strange) and self._reports(step.text):
                return step
            step = await self.ask(tool_choice="none", results=self.tools.results())
            if written := await self.tools.drafted(step.text):
                return written
            read = self.tools.read()
            text = with_figure(step.text, read, words)
            told = figure(read) and (self.shelled or text == step.text)
            stands = told or not (instructs(step.text) or promises(step.text))
            if stands and not self._groundless(step.text):
                return with_words(step, text)
        elif not (again or self.tools.outcomes or self._missed_call(step.text)):
            empty = not (step.text or step.cut_call)
            if empty or echoes(step.text, words, WHOLE) or false_claim(step.text, ()):
                return await self.call()
            unfounded = invents(step.text, "", words) or refuses(step.text)
            if not (unfounded and await self.tools.names_file(words)):
                spoken = await self.talk() if refuses(step.text) else step
                return spoken or (await self.call() if states(words) else step)
        elif (
            self.shelled
            and not (again or promises(step.text))
            and quotes(step.text, self.tools.found())
        ):
            sought = quotes(step.text, "\n".join(self.tools.sought))
            return (await self.own_knowledge() if sought else None) or step  # why it cannot be done
        elif again and (
            (noted := any(map(self.tools.copies, step.calls[:1])))
            or await self.tools.missing_file()
        ):  # it has no other call to make
            results = self.tools.results() if SPEAKS_OF_FILE.search(words) and noted else ""
            step = await self.ask(tool_choice="none", results=results, talk=not results)
            if written := await self.tools.drafted(step.text):
                return written
            told = self._missed_call(step.text) or refuses(step.text) or not step.text
            if noted and not (told or step.calls or invents(step.text, results, words, words)):
                return step
        if self.tools.acted and (again or self.shelled or self.tools.last in ACTING):
            return Step(Assistant(self.tools.closed or self.tools.report()))
        if not self.shelled:
            command = await self.command()
            if command.calls and not self.tools.repeats(command.calls[0]):
                says = self.tools.says(command.calls[0])
                return (await self.own_words() if says else None) or command
        if self.tools.outcomes and not found and (known := await self.own_knowledge()):
            return known
        if not (found or again):
            step = await self.ask(tool_choice="required")
        elif not (found or self.swapped):
            self.swapped = True
            step = await self.ask(tool_choice="required", only=self.tools.others())
        groundless = self._groundless(step.text)
        if not step.calls and self.tools.outcomes and (groundless or instructs(step.text)):
            if shown := self.tools.shown():
                return Step(Assistant(shown))
            if groundless:
                raise Looping(self.tools.report(translated(texts.NO_RESULT)))
        return step

    async def saved(self, written: Step) -> Step:
        """The answer after a file was written, with which nothing is left to do."""
        await self.act(written)
        step = await self.ask(tool_choice="none", results=self.tools.results())
        stands = step.text and not (instructs(step.text) or self._groundless(step.text))
        return step if stands else Step(Assistant(self.tools.report()))

    async def remembered(self, step: Step) -> Step | None:
        """The answer from notes and past conversations, to a question of what the person has or did; where they hold
        nothing, the step's own, which says so."""
        kept = await self.tools.look_up()
        if kept:
            told = await self.ask(tool_choice="none", results=self.tools.results())
            if told.text and not (self._missed_call(told.text) or self._groundless(told.text)):
                return told
        if kept is None or step.calls or not step.text or self._missed_call(step.text):
            return None
        return step if kept or refuses(step.text) else of_its_own(step)

    async def call(self) -> Step:
        """A call, of a model that had nothing of its own to say; of what a person states it keeps a note, or plans it."""
        only = (
            frozenset(("remember", "schedule")) if states(self.transcript.words()) else frozenset()
        )
        step = await self.ask(tool_choice="required", only=only)
        empty = not (step.calls or step.text) or any(map(self.tools.says, step.calls[:1]))
        return (await self.own_words() if empty else None) or step

    async def talk(self) -> Step | None:
        """The answer to what needs no tool, of a model that refused it while it read of tools, if it is one."""
        step = await self.ask(tool_choice="none", talk=True)
        kept = step.text and not (self._missed_call(step.text) or refuses(step.text))
        return step if kept and not step.calls else None

    async def own_knowledge(self) -> Step | None:
        """Ask the model to answer from what it knows, after the tools found nothing. Returns its answer, marked as the
        model's own; None if the message wants no words, speaks of a file, or got no usable answer."""
        words = self.transcript.words()
        asks = words.rstrip().endswith(("?", "？")) or WANTS_WORDS.match(words)
        if not asks or SPEAKS_OF_FILE.search(words) or not (step := await self.own_words()):
            return None
        return of_its_own(step)

    async def own_words(self) -> Step | None:
        """The answer of a model that reads nothing but the person's words, if it is one."""
        step, words = await self.ask(tool_choice="none", talk=True), self.transcript.words()
        bad = self._missed_call(step.text) or refuses(step.text)
        kept = step.text and not (step.calls or bad or invents(step.text, "", words, words))
        return step if kept else None

    async def command(self) -> Step:
        """The step of a model that is asked, once a turn, from the beginning for a command of the shell."""
        self.shelled = True
        return await self.ask(tool_choice="required", afresh=True)

    async def rewrite(self) -> Step | None:
        """The step that edits a file that the message names, of a model that is shown it and asked, once a turn, for the
        whole new one."""
        if self.rewritten or not await self.tools.to_edit():
            return None
        self.rewritten = True
        await self.tools.read_named()
        results = self.tools.results()
        step = await self.ask(tool_choice="none", results=results, system=texts.REWRITE)
        return await self.tools.drafted(step.text)

    def _missed_call(self, text: str) -> bool:
        """Whether an answer before any call instructs, promises, or is JSON that nobody asked for."""
        return instructs(text) or promises(text) or is_json(text, self.transcript.words())

    def _enough(self, request: Request) -> Callable[[str], bool] | None:
        """Whether words are no answer to come: a whole block of code, where a small model has to call first."""
        small = self.constrained or self.constrain == "missed call"
        wanted = small and request.tools and request.tool_choice == "auto"
        return shows_code if wanted and not self.tools.outcomes else None

    def _reports(self, text: str) -> bool:
        """Whether an answer tells something of the results, or comes after a call that only did something."""
        done = self.tools.done if self.tools.acted else self.tools.done - {"bash"}
        if not text or self._missed_call(text) or false_claim(text, done):
            return False
        if other_unit(text, self.tools.found()):
            return False
        confirms = self.tools.acted and not (refuses(text) or self._groundless(text))
        told = self.tools.found() if refuses(text) else self.tools.results()
        return confirms or tells(text, told, self.transcript.words())

    def _empty(self, text: str) -> bool:
        """Whether an answer is a command to run oneself, claims what was not done or, where nothing was found, anything
        but that, or is groundless."""
        claims = bool(false_claim(text, self.tools.done))
        claims |= not (any(self.tools.outcomes.values()) or refuses(text))
        return instructs(text) or claims or self._groundless(text)

    def _groundless(self, text: str) -> bool:
        """Whether an answer has nothing but the person's own words, or a number or a file out of the air, repeats
        what it was told to do, or says that the model cannot do what it has done."""
        words, found = self.transcript.words(), self.tools.found()
        if quotes(text, f"{texts.ANSWER_FROM} {base_text()}", INSTRUCTION):
            return True
        if self.tools.outcomes and (unable(text) or is_call(text) or copies_tool(text)):
            return True
        if not any(self.tools.outcomes.values()):
            return echoes(text, words) or invents(text, "", words, found)
        called = " ".join(call.arguments for call, _ in self.transcript.results())
        unknown = unknown_files(text, f"{words} {found} {called}") or other_unit(text, found)
        return unknown or echoes(text, words) or invents(text, found, words)

    async def resume(self) -> None:
        """Go on where the journal stands; after a crash, with the open calls first."""
        self.window = await self.caller.window()
        self.tools.output_bytes = round(self.window * ROOM)
        for call, result in self.transcript.results():
            self.tools.remember(call, result)
        if open_calls := self.transcript.open_calls():
            waiting = await self.turn.approvals.rows.not_taken(self.turn.journal.turn)
            await self.tools.run(open_calls, interrupted=self.transcript.started - waiting)
        elif self.transcript.own and isinstance(self.transcript.own[-1], Assistant):
            await self.transcript.note(texts.GO_ON)

    async def ask(
        self,
        *,
        tool_choice: ToolChoice = "auto",
        results: str = "",
        system: str = texts.ANSWER_FROM,
        afresh: bool = False,
        only: frozenset[str] = frozenset(),
        talk: bool = False,
    ) -> Step:
        """One model call. The transcript is compacted when that is due, or when the server finds it too long.

        A call that ended while the model was still thinking is made once more without thought. With
        `results` the model reads nothing but `system`, them, the turn's pictures and the person's words, or with `talk` these
        without them; `afresh`: nothing of what was done in this turn, and it can call bash alone. `only`: the tools that it can call, if not all.
        """
        await self.compact()
        compactions, request = 0, replace(self.request(tool_choice), only=only)
        if results or talk:
            words = self.transcript.words()
            told = texts.FOUND.format(results=results, words=words) if results else words
            asked = User(told, self.transcript.pictures())
            messages = (
                System(system if results else texts.TALK),
                *self.transcript.last_exchange(),
                asked,
            )
            sampling = NO_REPETITION if talk and request.constrained else {}
            request = replace(
                request, messages=messages, tools=(), constrained=False, sampling=sampling
            )
        elif afresh:
            request = replace(request, messages=self.transcript.asked(), only=frozenset({"bash"}))
        while True:
            try:
                draft = self.constrained and bool(self.tools.outcomes) and tool_choice == "auto"
                draft |= system == texts.REWRITE
                completion, parser = await self.caller.complete(
                    request, shown=not draft, enough=self._enough(request)
                )
            except ContextFull:
                if (
                    results
                    or talk
                    or compactions == COMPACTIONS
                    or not await self.compact(full=True)
                ):
                    raise
                compactions += 1
                request = replace(request, messages=self.transcript.messages)
            else:
                await self.transcript.called(completion, aside=bool(results) or talk or afresh)
                if not request.brief and thought_alone(completion, parser):
                    request = replace(request, brief=True)
                    continue
                taken = {call.id for call in calls_of(self.transcript.messages)}
                step = read_step(completion, parser, self.caller.known, taken, self.turn.new_id)
                if not step.calls or completion.calls or self.constrain == "never":
                    return step
                self.constrained = True
                if request.constrained or self.tools.valid(step):
                    return call_alone(step)
                request = replace(request, constrained=True)  # what could not be run is forgotten

    async def compact(self, *, full: bool = False) -> bool:
        """Shorten the transcript if it nearly fills the window (with `full`, in any case), and show a notice while a
        model writes the summary. Returns whether anything was shortened."""
        began = False

        def begins() -> None:
            nonlocal began
            began = True
            self.emit(Notice(translated(texts.SHORTENING)))

        changed = await self.transcript.compact(begins, full=full)
        if began:
            self.emit(GpuQueued(0))
        return changed

    def request(self, tool_choice: ToolChoice) -> Request:
        last = tool_choice == "none"
        left = self.limits.tokens - self.transcript.usage.completion_tokens
        budget = LAST_WORD_TOKENS if last else max(LAST_WORD_TOKENS, left - LAST_WORD_TOKENS)
        return Request(
            messages=self.transcript.messages,
            tools=tuple(self.turn.schemas),
            tool_choice="none" if self.turn.frozen else tool_choice,
            max_tokens=min(self.limits.reply_cap(self.window), budget),
            thinking=self.turn.thinking,
            brief=self.turn.answer_now.is_set(),
            constrained=self.constrained,
        )

    async def act(self, step: Step) -> None:
        self.checks.acted()
        await self.transcript.add(step.message)
        await self.tools.run(step.calls, unreadable=step.unreadable)
        await self.transcript.steer()

    def limit_reached(self) -> TurnError | None:
        """The limit that ends the turn before its next model call, or None."""
        if self.tools.calls >= self.limits.max_tool_calls:
            return ToolLimit(translated(texts.LIMIT_CALLS).format(count=self.limits.max_tool_calls))
        if self.transcript.usage.completion_tokens >= self.limits.tokens - LAST_WORD_TOKENS:
            return ToolLimit(translated(texts.LIMIT_TOKENS).format(count=self.limits.tokens))
        if self.turn.time.left <= (1 - SOON) * self.limits.seconds:
            return ToolLimit(self.out_of_time)
        if self.tools.malformed > self.limits.max_repairs:
            return TurnError(translated(texts.UNUSABLE))
        return None

    async def last_word(self, limit: TurnError) -> Ending:
        """The answer at a limit, without tools. Raises the limit with a report where the model finds none.

        A small model is shown the results alone first, as with its calls before it, it goes on calling;
        another model is shown them where it calls all the same.
        """
        small, results = self.constrained, self.tools.results()
        for alone in (small, not small) if results else (False,):
            step = await self.ask(tool_choice="none", results=results if alone else "")
            text = "" if step.calls else self.answer(step)
            if text and not (self.constrained and self._empty(text)):
                # After a circle, or too many malformed calls, it has found words after all: an answer.
                reason = limit.reason if isinstance(limit, ToolLimit) else "done"
                return Ending(text, reason, step.message)
        raise type(limit)(self.tools.report(str(limit)))


def of_its_own(step: Step) -> Step:
    """The step, whose answer says that it is the model's own knowledge."""
    return with_words(step, f"{step.text}\n\n{translated(texts.OWN_KNOWLEDGE)}")
