"""Runs the calls of a step, once the tool is known and its arguments valid."""

import asyncio
import json
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from agent.aio import complete
from agent.approvals import DENIED, EXPIRED, NOBODY, GuardedCall
from agent.budgets import COSTS, CallBudget
from agent.context.compaction_plan import clip
from agent.errors import NoSandbox, ToolError, TurnError
from agent.events import CallRefused, Emit, PlanChanged, ToolCalled, ToolFinished, ToolProgress
from agent.language import translated
from agent.llm.tool_call_parser import KnownTools, ToolCallParser, arguments_of
from agent.messages import Assistant, ToolCall
from agent.schedule.times.task_text import asks_for_reminder, clauses
from agent.schedule.watches import orders_watch
from agent.tools.bash import NO_OUTPUT
from agent.tools.tool import Call, Output, Tool, Withhold
from agent.turn import texts
from agent.turn.answer_checks import SHORT, WHOLE, echoes, figure, states, words_of
from agent.turn.conversation import Conversation
from agent.turn.repetition import RepeatedCallDetector
from agent.turn.step import Step
from agent.turn.turn import Turn

ADDRESS = re.compile(r"https?://[^\s<>\"'()\[\]]*[^\s<>\"'()\[\].,;:!?]")
PRINTS = re.compile(r"(echo|printf) [^|<>$`;&\n\d]+")  # words, and nothing else
# What an answer shows as the content of a file, and its language.
CODE = re.compile(r"^ *```(\w*)[^\n]*\n(.+?)^ *```", re.DOTALL | re.MULTILINE)
# A command that prints another version of a file, and leaves the file as it is.
FILTER = re.compile(r"\s*(?:cat [^|>]+\|\s*)?(?:sed|sort|uniq|tac)\b[^|>]*")
SHELLS = ("sh", "bash", "shell", "console")
_FIRST = r"(?:^|[.,:;!?\n] ?|\b(?:please|and|then|now|you|bitte|und|et|y|favor|in \S+\.\w+,?) )"
_EDIT = (
    r"sort|change|replace|edit|update|fix|repair|append|insert|correct|add(?! up)"
    r"|sortier|änder|ersetz|bearbeit|korrigier|reparier|füg|trie|change|remplace|modifie|corrige|répare|ajoute"
    r"|ordena|cambia|reemplaza|edita|corrige|repara|añade|agrega"
)
_DELETE = "delete|remove|lösch|entfern|supprime|efface|borra|elimina"
_MOVE = (
    f"move|rename|copy|verschieb|benenn|kopier|déplace|renomme|copie|mueve|renombra|copia|{_DELETE}"
)
WANTS_EDIT = re.compile(f"{_FIRST}(?:{_EDIT})", re.IGNORECASE)
WANTS_CHANGE = re.compile(f"{_FIRST}(?:{_EDIT}|{_MOVE})", re.IGNORECASE)
WANTS_MOVE = re.compile(f"{_FIRST}(?:{_MOVE})", re.IGNORECASE)
WANTS_DELETED = re.compile(f"{_FIRST}(?:{_DELETE})", re.IGNORECASE)
_NUMBER = r"(?:\d+|two|three|zwei|drei|deux|trois|dos|tres)"
_END = r"(?:first|last|(?:erste|letzte|premi[eè]re|derni[eè]re|primera|última)[ns]?)"
COUNTING = re.compile(
    r"\b(?:how many|sum|total|average|mean|median|count|maximum|minimum"
    r"|(?:high|low|long|short|larg|bigg|small|warm|cold|hott|cheap|fast|slow|old|young|heavi|great|few)est"
    r"|wie ?viele|summe|durchschnitt|insgesamt|zähl\w*|(?:meist|wenigst|größt)e\w*"
    r"|(?:höch|niedrig|läng|kürze|klein|wärm|kälte|billig|teuer|schnell|langsam|älte|jüng|schwer)ste\w*"
    r"|combien de|somme|moyenne|compte|l[ae]s? (?:plus|moins)"
    r"|cuánt[oa]s|suma|promedio|media|cuenta|(?:el|las?|los) (?:más|menos|mayor|menor)"
    r"|сколько|сумм\w+|средн\w+|сам\w{2,3})\b|多少|总和|平均|最",
    re.IGNORECASE,
)
ENDS = re.compile(rf"\b(?:{_END} {_NUMBER}|{_NUMBER} {_END})\b", re.IGNORECASE)
WANTS_WORDS = re.compile(
    r"\W*(?:please |can you |could you |bitte )*(?:translate|explain|define|describe|tell me|write|compose|suggest|name"
    r"|übersetz|erklär|beschreib|schreib|tradui|expli|décri|écri|traduc|describ|escrib|перевед|объясн|напиши)",
    re.IGNORECASE,
)
WANTS_LESS = re.compile(
    r"\b(?:delete|remove|drop|cut|keep|only|filter|clean|trim|shorten|dedup|duplicat|unique|overwrite|replace"
    r"|lösch|entfern|behalt|kürz|doppelt|supprim|enlev|retir|gard|raccourc|elimin|borra|quita|acorta)",
    re.IGNORECASE,
)
WANTS_FILE = re.compile(
    r"\b(?:write|create|make|generate|save|schreib|erstell|écri|crée|escrib|crea)\w*", re.IGNORECASE
)
WANTS_SENT = re.compile(
    rf"{_FIRST}(?:send (?:me|us|it|them)|(?:schicke?|sende) (?:mir|uns|sie|es|ihn)|envoie[- ](?:moi|nous|les?|la))\b"
    r"|\b(?:envía|mánda|envia|manda)(?:me|nos|l[oa]s?)|\b(?:пришли|отправь|вышли) (?:мне|нам|его|её)\b|(?:发|传|寄)送?给我",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"\s*(?:(?:what|which|who|whose|where|when|why|how(?! about)|is|are|was|were|does|did|wie|welche\w?|wer|wo|wann"
    r"|warum|que|quel\w*|qui|où|comment|combien|pourquoi)\b|¿).*\?\s*",
    re.IGNORECASE | re.DOTALL,
)
# What a person has, or did.
OWN = re.compile(
    r"\b(?:my|our|mein\w*|unser\w*|mon|ma|mes|notre|nos|mi|mis|nuestr\w+|мо[йяёеию]\w*|наш\w*)\b|我"
    r"|(?<!how )\b(?:was|am|did|have|had|do|are|were|bin|war|wurde|habe) (?:i|we|ich|wir)\b",
    re.IGNORECASE,
)
SENT = re.compile(
    r"\b(?:i|we)(?:'ve| have| had| just| already)* (?:sent|gave|given|shared|uploaded|forwarded)\b"
    r"|\b(?:ich|wir) [^.?!]{0,30}(?:geschickt|gesendet|gegeben|hochgeladen|weitergeleitet)"
    r"|\b(?:je|nous) (?:t'|te |vous |l')*(?:ai|avons) (?:envoyé|donné|transmis|transféré)"
    r"|\bte (?:envié|mandé|di|pasé|reenvié|he (?:enviado|mandado|dado|pasado))"
    r"|\bя [^.?!]{0,20}(?:прислал|отправил|послал|переслал|дал)|(?:发|传|寄|转发)给你",
    re.IGNORECASE,
)
ALSO_WRITE = re.compile(_FIRST + WANTS_FILE.pattern, re.IGNORECASE)
SPEAKS_OF_FILE = re.compile(r"\w\.\w|\b(?:file|folder|datei|ordner|fichier|dossier|archivo|fichero|carpeta|script|program)", re.IGNORECASE)  # fmt: skip
LONGEST_LETTER = 2000  # characters
# What a small model wrote over again, in a text short enough to be searched for it.
AGAIN = re.compile(r"\A(?!.{8000})(.{20,}?)(?:\s+\1)+\Z", re.DOTALL)
READING = ("bash", "read_file", "grep", "list_files")
ABSENT = re.compile(r"There is no (?:such )?file|cat: .*No such file")
LOOKING = frozenset(READING) - {"bash"}
UNCHANGING = ("read_file", "grep", "list_files", "git_status", "git_diff", "remember", "recall", "schedule", "send_file")  # fmt: skip
WRITING = ("write_file", "edit_file", "git_commit")
ACTING = ("write_file", "edit_file", "git_commit", "remember", "schedule", "send_file")
NEAR = 0.85  # of difflib: a slip, such as remembr; rename_file is no read_file
MOST_PAGES = 2  # that are read before the model is asked
MOST_NAMED = 3  # files that are read where it changed none
_LINE = 120  # characters
_REPORTED = 8  # lines of a report


@dataclass
class ToolRunner:
    """Runs one call at a time, and remembers what a turn has done.

    `calls` counts the calls that were run; `done` holds the names of tools that ran without an error,
    `outcomes` whether each call (by id) that ran did so and found what it searched for; `malformed`
    counts steps with malformed calls; `strange`: strangers' text was read; `acted`: the last call did something and
    had nothing to tell but that; `astray`: it looked for a repository and failed; `planned`: the jobs that were
    planned, `changed`: what else a person should be told, in their language. `output_bytes` and `withhold` are
    those of agent.tools.tool.Call;
    `careful`: no file is replaced that this turn has not seen.
    """

    turn: Turn
    transcript: Conversation
    emit: Emit
    withhold: Withhold
    output_bytes: int = 0
    careful: bool = False
    calls: int = 0
    done: set[str] = field(default_factory=set)
    outcomes: dict[str, bool] = field(default_factory=dict)
    malformed: int = 0
    strange: bool = False
    acted: bool = False
    planned: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    astray: bool = False
    _lines: list[str] = field(default_factory=list)  # of the report
    _detector: RepeatedCallDetector = field(default_factory=RepeatedCallDetector)
    _no_sandbox: str = ""  # why
    letter: str = ""  # what was written to a file that the message did not name: the person sees it in the answer
    last: str = ""  # the tool that ran last
    sought: list[str] = field(default_factory=list)  # what searches told that found nothing
    _before: dict[str, int | None] | None = None  # the files that the message names

    async def search_sent(self, words: str) -> None:
        """Search documents and past conversations for what a message asks of something that the person sent, as if the
        model had called for it: small ones look for a file."""
        asks = SENT.search(words) and words.rstrip().endswith(("?", "？"))
        if asks and self._has("recall") and not (self.turn.frozen or await self.names_file(words)):
            await self._call("recall", query=words)

    async def read_pages(self, words: str) -> None:
        """Read the pages whose addresses a message names, as if the model had called for them: small ones do not."""
        browser = self.turn.context.browser
        if browser is None or browser.reading != "seen" or self.turn.frozen:
            return  # or an owner would be asked
        for address in list(dict.fromkeys(ADDRESS.findall(words)))[:MOST_PAGES]:
            await self._call("bash", command=f"web read {shlex.quote(address)}")

    async def look_up(self) -> bool | None:
        """Search notes and past conversations for what the message asks of the person's own things, as if the model had
        called for it: small ones invent it. Returns whether anything was found, None where it asks no such thing."""
        words = self.transcript.words()
        asks = words.rstrip().endswith(("?", "？")) and OWN.search(words)
        made = any(call.name == "recall" for call, _ in self.transcript.results())
        if made or not (asks and self._has("recall")) or SPEAKS_OF_FILE.search(words):
            return None
        return self.outcomes.get(await self._call("recall", query=words), False)

    async def plan_watch(self, words: str) -> str:
        """Plan the watch that a message orders, as if the model had called for it: small ones look once instead. Returns
        what was planned, or that nobody can be asked for it, for the person; "" where the model has to tell."""
        planning = self._has("schedule") and not self.turn.frozen
        if not (planning and orders_watch(words, datetime.now().astimezone())):
            return ""
        await self._call("schedule", when="", task=words)
        return self.unasked or self.closed

    def _has(self, name: str) -> bool:
        return any(tool.name == name for tool in self.turn.tools)

    async def _call(self, name: str, **arguments: str) -> str:
        """Run a call that the model did not make, as if it had; returns its id."""
        call = ToolCall(self.turn.new_id(), name, json.dumps(arguments, ensure_ascii=False))
        await self.transcript.add(Assistant("", (call,)))
        await self.run((call,))
        return call.id

    async def named_files(self, words: str) -> dict[str, int | None]:
        """The files that a message names, each with a hash of its beginning; None: it is not there."""
        named: dict[str, int | None] = {}
        for name in re.findall(r"[\w./-]+\.\w+", words):
            named[name] = None
            with suppress(ToolError), await self.turn.context.sandbox.files.open(name) as file:
                named[name] = hash(file.read(1 << 20))
        return named

    async def names_file(self, words: str) -> bool:
        """Whether a message names a file of the workspace."""
        return any(f is not None for f in (await self.named_files(words)).values())

    async def note_files(self) -> None:
        """Keep what the files are that the message wants changed."""
        if WANTS_CHANGE.search(self.transcript.words()):
            self._before = await self._there()

    async def unchanged(self) -> str:
        """The file that the message wants changed, where it is as it was when they were noted; else ""."""
        before = self._before
        if not before or self.done.intersection(WRITING) or await self._there() != before:
            return ""
        return next(iter(before))

    async def to_edit(self) -> str:
        """The file that the message names and wants edited, where it is as it was; else ""."""
        return await self.unchanged() if WANTS_EDIT.search(self.transcript.words()) else ""

    async def read_named(self) -> None:
        """Read the files that the message names, but those that calls have read."""
        calls = [call for call, _ in self.transcript.results() if self.outcomes.get(call.id)]
        read = {str((arguments_of(call.arguments) or {}).get("path")) for call in calls}
        for name in list(await self._there())[:MOST_NAMED] if self._has("read_file") else ():
            if name not in read:
                await self._call("read_file", path=name)

    async def read_rest(self) -> bool:
        """Read the files that a question names, where not all of them were; whether that was so."""
        words, called = self.transcript.words(), len(self.transcript.results())
        read = [text for call, text in self.transcript.results() if call.name in READING]
        absent = read and not self.done and all(map(ABSENT.match, read))
        if (absent or (self.done and self.done <= LOOKING)) and QUESTION.fullmatch(words):
            await self.read_named()
        return len(self.transcript.results()) > called

    @property
    def stumbled(self) -> bool:
        """Whether the last call was of a program that there is not, after another had found something: small models run
        what they have read."""
        told = self.transcript.results()
        return bool(told) and "command not found" in told[-1][1] and any(self.outcomes.values())

    async def _there(self) -> dict[str, int | None]:
        named = await self.named_files(self.transcript.words())
        return {name: found for name, found in named.items() if found is not None}

    async def missing_file(self) -> str:
        """The file that the message wants made and that is not there, if it is one; else ""."""
        words = self.transcript.words()
        if not WANTS_FILE.search(words):
            return ""
        missing = [name for name, found in (await self.named_files(words)).items() if found is None]
        return missing[0] if len(missing) == 1 else ""

    async def drafted(self, text: str) -> Step | None:
        """Make a `write_file` call of the first fitting block of code in an answer: small models show a file's content
        instead of writing it. The block goes to the file that the message asks to create, if that is not there yet, or
        to the file that it asks to change, if the block is a new version of that. Returns None if there is none."""
        for language, code in CODE.findall(self.without_headings(text)):
            path = await self.missing_file() or await self._revised(code)
            if path and (language not in SHELLS or path.endswith(".sh")):
                return self._written(path, code)
        return None

    async def printed(self) -> Step | None:
        """Make a `write_file` call of what a filter printed of the file that the message wants changed, where that is
        as it was: small models forget sed's -i. Returns None if there is none."""
        words = self.transcript.words()
        less = WANTS_DELETED.search(words)
        if not (less or WANTS_EDIT.search(words)) or not (path := await self.unchanged()):
            return None
        held = await self._held(path)
        for call, text in self.transcript.results():
            command = str((arguments_of(call.arguments) or {}).get("command"))
            filtered = FILTER.fullmatch(command) and posixpath.basename(path) in command
            lines = text.splitlines()
            version = len(lines) == len(held) or set(lines) == set(held)
            version |= bool(less and set(lines) < set(held))
            if filtered and version and lines != held and self.outcomes.get(call.id):
                return self._written(path, f"{text}\n")
        return None

    def _written(self, path: str, content: str) -> Step:
        fields = json.dumps({"path": path, "content": content}, ensure_ascii=False)
        return Step(Assistant("", (ToolCall(self.turn.new_id(), "write_file", fields),)))

    async def _revised(self, code: str) -> str:
        """The file that the message wants changed, was not yet, and that the code is a version of; else ""."""
        words = self.transcript.words()
        if WANTS_EDIT.search(words) and not self.done.intersection(WRITING):
            for name in await self.named_files(words):
                held = await self._held(name)
                if code.splitlines() != held and revises(code, held):
                    return name
        return ""

    async def _held(self, path: str) -> list[str]:
        """The lines of a file of the workspace; none where it is not there."""
        with suppress(ToolError), await self.turn.context.sandbox.files.open(path) as file:
            return file.read(1 << 20).decode("utf-8", "replace").splitlines()
        return []

    def remember(self, call: ToolCall, result: str) -> None:
        """Count a call that was finished before a restart."""
        self.calls += 1
        self.done.add(call.name)
        self.outcomes[call.id] = True
        self.acted = call.name in ACTING or result == NO_OUTPUT
        self._lines.append(described(call))
        self._detector.ran(call.name, arguments_of(call.arguments) or {}, result)

    def repeats(self, call: ToolCall) -> bool:
        """Whether the call would only repeat what is known already."""
        try:
            tool, arguments = self.checked(call)
        except ToolError:
            return False
        return self._detector.completes_cycle(tool.name, arguments)

    def copies(self, call: ToolCall) -> bool:
        """Whether the call would keep as a note what was found, though the message has nothing of it, or that
        nothing was."""
        if call.name != "remember":
            return False
        ran = [earlier.name for earlier, _ in self.transcript.results()]
        words = self.transcript.words()
        if ran and "remember" not in ran and not any(self.outcomes.values()):
            return not states(words)
        note, found, asked = map(words_of, (call.arguments, self.found(), words))
        shared = {word for word in note & asked if len(word) > 3}
        return note - {"note"} <= found and not shared

    def says(self, call: ToolCall) -> bool:
        """Whether the call does nothing but say words: it prints some, or writes or sends the person's own."""
        arguments, words = arguments_of(call.arguments) or {}, self.transcript.words()
        if call.name == "bash":
            printing = PRINTS.fullmatch(str(arguments.get("command", "")).strip())
            return printing is not None and printing[1] not in words
        own = [v for v in arguments.values() if isinstance(v, str) and echoes(v, words, WHOLE)]
        return bool(own) and call.name in ("write_file", "send_file")

    def checked(self, call: ToolCall, *, readable: bool = True) -> tuple[Tool, dict[str, Any]]:
        """The call's tool and its valid arguments; those of a call that is written as a command of bash. Raises ToolError
        with what is wrong."""
        tool = known_tool(call.name, self.turn.tools)
        arguments: Mapping[str, Any] | None = arguments_of(call.arguments) if readable else None
        if tool.name == "bash" and arguments:
            parser = ToolCallParser(KnownTools.of(self.turn.schemas))
            parser.feed(str(arguments.get("command")))
            parser.close()
            if len(parser.calls) == 1 and not parser.visible:
                tool = known_tool(parser.calls[0].name, self.turn.tools)
                arguments = parser.calls[0].arguments
        if arguments is None:
            raise ToolError(texts.UNREADABLE.format(form=tool.signature))
        return tool, tool.check(arguments)

    def valid(self, step: Step) -> bool:
        """Whether any of the step's calls can be run."""
        for call in step.calls:
            with suppress(ToolError):
                self.checked(call, readable=call.id not in step.unreadable)
                return True
        return False

    def others(self) -> frozenset[str]:
        """The tools but that of the last call, and those that would only keep or plan the failure."""
        names = {tool.name for tool in self.turn.tools} - {"remember"}
        if not wants_reminder(self.transcript.words()):
            names -= {"schedule"}
        return frozenset(names - {call.name for call, _ in self.transcript.results()[-1:]})

    def only_looked(self) -> bool:
        """Whether the message wants something changed, and files were read at most."""
        return self.done <= LOOKING and bool(WANTS_CHANGE.search(self.transcript.words()))

    @property
    def counts_by_eye(self) -> bool:
        """Whether the message asks for a count, a sum, the most or the ends of a file, and files were looked at only."""
        words = self.transcript.words()
        looked = bool(self.done) and self.done <= LOOKING - {"list_files"}  # which counts
        ends = ENDS.search(words) and not any('"last"' in c.arguments for c, _ in self._good())
        return looked and bool((COUNTING.search(words) or ends) and SPEAKS_OF_FILE.search(words))

    async def missed(self) -> str:
        """The tool for what the message asks beside what was done, where it was not tried: a reminder, or to be sent a
        file that is there; "" if nothing is missing."""
        called, words = (
            {call.name for call, _ in self.transcript.results()},
            self.transcript.words(),
        )
        left = {tool.name for tool in self.turn.tools} - called if called else set[str]()
        if "schedule" in left and any(map(wants_reminder, clauses(words))):
            return "schedule"
        sends = "send_file" in left and self.turn.context.file_sender and WANTS_SENT.search(words)
        return "send_file" if sends and await self._there() else ""

    @property
    def closed(self) -> str:
        """What the last call planned or noted, for the person, if it did: nothing is left to do then."""
        told = {"schedule": self.planned, "remember": self.changed}
        return next(reversed(told.get(self.last, [])), "") if self.acted else ""

    @property
    def unasked(self) -> str:
        """That nobody could be asked or, of a small model, which would try it another way, that no owner allowed it;
        where this is all that the turn has come to."""
        last = self.transcript.results()[-1][1]
        if self.done or last not in ((NOBODY, DENIED, EXPIRED) if self.careful else (NOBODY,)):
            return ""
        said = last.removeprefix("Error: ")
        return f"{said[0].upper()}{said[1:]}"

    def results(self) -> str:
        """What the turn's calls gave, each once; failures only where no call succeeded."""
        told = {
            described(call): f"{summary(call)}:\n{texts.DONE if text == NO_OUTPUT else text}"
            for call, text in self._good()
        }
        return clip("\n\n".join(told.values()), self.output_bytes)

    def without_headings(self, answer: str) -> str:
        """An answer without what stands above each result, which small models copy."""
        for call, _ in self.transcript.results():
            answer = f"\n{answer}".replace(f"\n{summary(call)}:\n", "\n")[1:]
        return answer

    def found(self) -> str:
        """Those results without the calls."""
        return "\n".join(text for _, text in self._good())

    def read(self) -> str:
        """What was read or printed, each once, without strangers' text."""
        good = dict.fromkeys(text for call, text in self._good() if call.name in READING)
        return "" if self.strange else "\n".join(t for t in good if t != NO_OUTPUT)

    def last_read(self) -> str:
        """What the last call read or printed, unless it is strangers' text."""
        if self.strange or not any(self.outcomes.values()):
            return ""
        call, text = self._good()[-1]
        return text if call.name in READING and text != NO_OUTPUT else ""

    def shown(self) -> str:
        """What was found, for a person, where it is short; else ""."""
        found = self.read() if any(self.outcomes.values()) else ""
        block = f"{translated(texts.FOUND_THIS)}\n```\n{found}\n```"
        return block if 0 < len(found) <= SHORT else ""

    def _good(self) -> list[tuple[ToolCall, str]]:
        ran = [(call, text) for call, text in self.transcript.results() if call.id in self.outcomes]
        return [(call, text) for call, text in ran if self.outcomes[call.id]] or ran

    def report(self, why: str = "") -> str:
        """For a person: `why` the turn ended, and its last calls, each once."""
        lines = [f"- {line}" for line in list(dict.fromkeys(self._lines))[-_REPORTED:]]
        done = [translated(texts.DONE_SO_FAR), *lines] if lines else []
        return "\n".join(filter(None, (why, *done)))

    async def run(
        self,
        calls: Sequence[ToolCall],
        *,
        unreadable: Collection[str] = (),
        interrupted: Collection[str] = (),
    ) -> None:
        """Run the calls in order and write their results to the transcript.

        The arguments of calls whose ids are in `unreadable` are no JSON object; those in
        `interrupted` had started when the program was killed. Raises TurnError when no command
        can be run here.
        """
        most, refused = self.turn.limits.max_tool_calls, False
        images: list[str] = []
        for call in calls:
            if call.id in interrupted:
                await self.transcript.result(call, texts.INTERRUPTED)
                continue
            if self.calls >= most:
                await self.transcript.result(call, texts.NOT_RUN_LIMIT.format(count=most))
                continue
            strangers: Sequence[str] = ()
            try:
                tool, arguments = self.checked(call, readable=call.id not in unreadable)
            except ToolError as error:
                refused, text = True, str(error)
                self.emit(CallRefused(call.name, text))
            else:
                self.calls += 1
                self.emit(ToolCalled(call.id, tool.name, arguments))
                output, strangers = await self._run(tool, replace(call, name=tool.name), arguments)
                self.strange |= bool(strangers)
                text = output.text
                images += output.images
            if self.calls >= most:
                text = f"{text}\n{texts.LAST_CALL}"
            await self.transcript.result(call, text, strangers)
            if self._no_sandbox:
                raise TurnError(self._no_sandbox)
        if images:  # templates show pictures in people's messages only
            await self.transcript.note(texts.PICTURES_OF_CALLS, images)
        self.malformed += refused

    async def _run(
        self, tool: Tool, call: ToolCall, arguments: dict[str, Any]
    ) -> tuple[Output, Sequence[str]]:
        """The tool's output, and the sources of strangers' text in it."""
        await self.transcript.start(call)
        journal, costs = self.turn.journal, COSTS.get(tool.name, {})
        guarded = GuardedCall(journal.turn, call.id, journal.chat, journal.taints)
        approve = self.turn.approvals.approver(guarded, self.emit)
        budget = CallBudget(self.turn.budgets, journal.chat, approve, described(call))
        context = Call(
            id=call.id,
            turn=journal.turn,
            chat=journal.chat,
            context=self.turn.context,
            approve=approve,
            progress=lambda text: self.emit(ToolProgress(call.id, text)),
            output_bytes=self.output_bytes,
            taints=journal.taints,
            withhold=self.withhold,
            asked="" if self.planned else self.transcript.words(),
            planned=lambda plan: self.emit(PlanChanged(plan)),
            budget=budget,
        )
        began = asyncio.get_running_loop().time()
        advised, reserved = True, False
        if (history := self.turn.history) and tool.name not in UNCHANGING:
            await complete(asyncio.to_thread(history.begin, journal.turn))
        try:
            await self._check_hasty(tool, context, arguments)
            advised = False
            await budget.reserve({"calls": 1, **costs})
            reserved = True
            output = await tool.run(context, arguments)
        except ToolError as error:
            output = Output(str(error), ok=False)
            if isinstance(error, NoSandbox):
                self._no_sandbox = str(error)
        if reserved and not output.ok:
            await budget.settle({kind: -count for kind, count in costs.items()})
        seconds = max(0.0, asyncio.get_running_loop().time() - began - approve.waited)
        self._detector.ran(call.name, arguments, output.text, seconds)
        told = not output.ok or (tool.name == "bash" and figure(output.text))
        ended = clip_line(output.text) if told else "ok"
        if not advised:
            self._lines.append(f"{described(call)}: {ended}")
        named = self.careful and tool.name == "list_files" and self._names_known(output.text)
        self.outcomes[call.id] = output.ok and output.found and not named
        self.acted = output.ok and (tool.name in ACTING or output.text == NO_OUTPUT)
        self.last = tool.name
        self.astray = tool.name.startswith("git_") and not output.ok
        if output.ok:
            self.sought += [] if output.found else [output.text]
            self.done.add(call.name)
            if tool.name == "write_file" and not SPEAKS_OF_FILE.search(self.transcript.words()):
                self.letter = AGAIN.sub(r"\1", str(arguments["content"]).strip())
            if tool.name == "schedule":
                self.planned.append(output.shown)
            elif tool.name == "remember" or output.text.startswith("replaced "):
                self.changed.append(output.shown or output.text)
        self._finished(call, output, seconds)
        return output, list(dict.fromkeys(context.strangers))

    def _names_known(self, listed: str) -> bool:
        """Whether a list of files names only files that the message names too: it tells nothing new, and a small model
        would take it for the content of those files."""
        names = re.findall(r"^(.+) \(\d+ bytes[^)]*\)$", listed, re.MULTILINE)
        words = self.transcript.words()
        return all(posixpath.basename(name) in words for name in names)

    async def _check_hasty(self, tool: Tool, call: Call, arguments: dict[str, Any]) -> None:
        """Refuse what a small model does where it is asked of a file: to write to it; where it is to add to a file: to
        replace the file, unread, by the addition; where it is to show a part: to leave that alone in the file; and
        where it is to remind: to keep a note."""
        if self.careful and tool.name == "remember":
            if wants_reminder(self.transcript.words()):
                raise ToolError(texts.REMINDER)
            return
        if not self.careful or tool.name not in ("write_file", "edit_file"):
            return
        path, words = arguments.get("path", ""), self.transcript.words()
        name, held = posixpath.basename(path), await self._held(path)
        wanted = WANTS_CHANGE.search(words) or WANTS_LESS.search(words)
        if QUESTION.fullmatch(words) and not (wanted or ALSO_WRITE.search(words)):
            if held:
                raise ToolError(texts.ONLY_ASKED.format(path=path))
            if name in words:
                raise ToolError(texts.ASKED_ABSENT.format(path=path))
        ran = [earlier for earlier, _ in self.transcript.results() if self.outcomes.get(earlier.id)]
        seen = any(name in earlier.arguments for earlier in ran)
        if tool.name == "edit_file" or arguments.get("append") or (seen and wanted):
            return
        made = WANTS_EDIT.search(words) or ALSO_WRITE.search(words)
        if WANTS_MOVE.search(words) and not made and name in words:
            raise ToolError(texts.BY_SHELL)
        content = str(arguments.get("content", ""))
        if name.endswith(".json"):
            try:
                json.loads(content)
            except ValueError as error:
                raise ToolError(texts.NO_JSON.format(path=path, why=error)) from None
        called = " ".join(earlier.arguments for earlier, _ in self.transcript.results())
        for source in await self._there():
            if posixpath.basename(source) not in (name, *re.findall(r"[\w.-]+", called)):
                raise ToolError(texts.UNREAD_SOURCE.format(path=source))
        kept = content.splitlines()
        if seen and len(kept) < len(held) and set(kept) <= set(held):
            raise ToolError(texts.UNASKED.format(path=path))
        if held and not (seen or revises(content, held)):
            raise ToolError(texts.UNREAD.format(path=path))

    def _finished(self, call: ToolCall, output: Output, seconds: float) -> None:
        milliseconds = round(seconds * 1000)
        self.emit(
            ToolFinished(call.id, call.name, output.ok, output.text, milliseconds, output.shown)
        )


def known_tool(name: str, tools: Sequence[Tool]) -> Tool:
    """The tool of that name. ToolError where there is none: with the signature of the one that was meant, else with all
    tools and the signature of the one whose words have most of the name's."""
    by_name = {tool.name: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    if near := get_close_matches(name.lower(), by_name, 1, NEAR):
        raise ToolError(texts.NO_TOOL.format(name=name, form=by_name[near[0]].signature))
    told = texts.UNKNOWN_TOOL.format(name=name, tools=", ".join(by_name))
    worth: Counter[str] = Counter()
    for word in re.findall(r"[a-z]+", name.lower()):
        stem = re.compile(rf"(?:\b|_){word.removesuffix('e')}")
        having = [t.signature for t in tools if stem.search(f"{t.name} {t.description}".lower())]
        if len(having) < len(tools) / 2:  # most have files
            worth.update(dict.fromkeys(having, len(tools) // max(1, len(having))))
    raise ToolError(" ".join([told, *(best for best, _ in worth.most_common(1))]))


def wants_reminder(text: str) -> bool:
    return asks_for_reminder(text, datetime.now().astimezone())


def revises(text: str, held: Sequence[str]) -> bool:
    """Whether a text is another version of a file: no shorter, with at least half of its lines."""
    said, kept = ([line for line in lines if line.strip()] for lines in (held, text.splitlines()))
    return 0 < len(said) <= len(kept) and sum(line in kept for line in said) * 2 >= len(said)


def summary(call: ToolCall) -> str:
    """A call's tool and first argument: a model takes the others, such as a time limit, for results."""
    first = next(iter((arguments_of(call.arguments) or {}).values()), "")
    return f"{call.name} {first}"


def described(call: ToolCall) -> str:
    """A call in one short line, for reports."""
    arguments = arguments_of(call.arguments) or {}
    shown = " ".join(value for value in arguments.values() if isinstance(value, str))
    return clip_line(f"{call.name} {shown}".replace("\n", " "))


def clip_line(text: str) -> str:
    """A text's first line, shortened."""
    text = text.strip()
    lines = (text.removesuffix("exit code: 1").strip() or text).split("\n")
    raised = lines[0].startswith("Traceback ")  # Python's own last line says what went wrong
    line = " ".join(lines[-1 if raised else 0].split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
