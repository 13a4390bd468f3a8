"""Watches: jobs that look without the model, and speak only when something changed.

A look is one command in the chat's sandbox (watch.sh). What it prints is compared with what was told last, which
the job's row keeps. The difference, the new state and the message are written in one transaction, so that a kill at
any step has a change told once. A change that may not be told yet leaves the state alone: a later look finds it.
"""

import json
import re
import shlex
from asyncio import Semaphore
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Literal, cast

from agent.errors import AgentError, NothingToDo, ToolError
from agent.language import plural, translated
from agent.sandbox.output_buffer import clean
from agent.sandbox.sandbox import bash_script
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.task_text import parse_with_task
from agent.schedule.watch_words import WORDS, begin_patterns, in_english
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.jobs import Job, LookResult, Occurrence
from agent.tools.bash import run_command
from agent.tools.tool import Call

WATCH = "watch"  # the kind of job, its option, and the word that a task begins with
FAILURES = 3  # in a row, before they are told
LEAST_SECONDS, LEAST_OF_MAIL = 3600, 60  # between two messages
SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
AT_ONCE = 2  # looks; the other slots of the sandbox are for people
MOST_CHARACTERS = 4096  # of its words
MOST_BYTES = 256 << 10  # of what a look prints
SHOWN_LINES, SHOWN_CHARACTERS = 40, 3000  # of a difference
SHOWN_REASON = 300  # characters of what a look printed that failed
LookKind = Literal["command", "exit", "file", "commits", "value", "answers", "page", "feed", "mail"]


@dataclass(frozen=True, slots=True)
class Watch:
    """`subject` is a command, a path, the name of a repository, an address, "host:port", or "account/folder". A figure is told when it
    rises above `limit` (or falls `below` it), and when it is `back`. Only lines that match `pattern` (grep -E, in any
    case) count, if there is one. At least `least` seconds lie between two messages. A change is told by the text
    `say`, or given to the model with the task `do`; else it is shown."""

    look: LookKind
    subject: str
    pattern: str = ""
    limit: float = 0.0
    below: bool = False
    back: float = 0.0
    least: int = LEAST_SECONDS
    say: str = ""
    do: str = ""


# -- in words -----------------------------------------------------------------

PATH = r"(?P<subject>\"[^\"]+\"|'[^']+'|\S+)"
PATTERN = r"(?: changes| exists| appears| is there| (?:for|mentions|contains) (?P<pattern>.+))?"
GROUPED = r"[1-9]\d{,2}(?:(?:,\d{3})+(?:\.\d+)?|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})"
NUMBER = rf"-?(?:(?:{GROUPED}|\d+,\d+)(?!,?\d)|\d+(?:\.\d+)?)"
UNIT = r"(?: ?(?:%|°C?|percent|degrees))?(?: full)?"
LIMIT = (
    rf"(?: is| rises| falls| gets| goes)? (?P<way>above|over|exceeds|more than|below|under|less than|>|<) (?P<limit>{NUMBER}){UNIT}"
    rf"(?:,? (?:and )?back (?:at|above|below) (?P<back>{NUMBER}){UNIT})?"
)
MEASURES = {
    "disk": "df --output=pcent /workspace | tail -n 1",
    "load": "cut -d ' ' -f 1 /proc/loadavg",
    "memory": "free | awk '/^Mem/ {print 100 - 100 * $7 / $2}'",
    "temperature": "sed -nE 's/.* ([0-9]+) °C.*/\\1/p' /host.txt | sort -n | tail -n 1",
}
AGE = "newest=$(find {path} -printf '%T@\\n' | sort -n | tail -n 1) && echo $((($(date +%s) - ${{newest%.*}}) / 60))"
COMES = r"(?: (?:arrives?|comes?)(?: in)?)"
ANSWERS = r"(?:(?:stops |no longer )?(?:answer|respond)(?:s|ing)|does(?: not|n't) answer|is up|is down|goes down)"
HYSTERESIS = 0.05  # of a limit, that a figure is back by
FORMS = {
    look: re.compile(f"(?:the )?{form}", re.IGNORECASE | re.DOTALL)
    for look, form in {
        "command": r"(?:output of )?(?:the )?command (?P<subject>.+)",
        "exit": r"exit code of (?:the )?(?:command )?(?P<subject>.+)",
        "commits": rf"(?:new )?commits (?:in|of|to) {PATH}",
        "file": rf"(?:file|folder) {PATH}{PATTERN}",
        "value": rf"(?:value of (?P<subject>.+?)|(?P<measure>{'|'.join(MEASURES)})(?: use| usage)?){LIMIT}",
        "age": rf"(?:file|folder) {PATH}(?: is| gets)? older than (?P<count>an? |\d+ ?|)(?P<unit>minute|hour|day)s?",
        "answers": rf"(?:url|port) {PATH}(?: {ANSWERS})?|(?:whether )?(?P<address>\S+) {ANSWERS}",
        "feed": rf"feed {PATH}{PATTERN}",
        "mail": rf"(?:(?:there is|i get|any|an?|new) )*(?:e-?)?mails?(?: (?:in|of|to|account|folder))?(?: (?!(?:arrives?|comes?|for|about|from|mentions|contains)\b){PATH})?(?: (?:for|about|from|mentions|contains) (?P<pattern>.+?))?{COMES}?",
        "page": rf"(?:page |(?=https?://|(?:[\w-]+\.)+[a-z]{{2,}}/))(?P<subject>\S+){PATTERN}",
    }.items()
}
THEN = re.compile(r"[\s,;]+(?:and )?then (say|do):?\s+(.+)", re.IGNORECASE | re.DOTALL)
AT_MOST = re.compile(
    r"[\s,;]+at most (?:once )?(?:every|an?) ?(\d*) ?(minute|hour|day)s?\b", re.IGNORECASE
)
NAMED = re.compile(
    r"(?<!\S)(?:the )?(?:(\S+) (?:file|folder)\b ?|(\S*[./]\S*) (?=(?:changes|mentions|contains)\b))",
    re.IGNORECASE,
)
USUAL = "every 15 minutes"  # a watch looks, where nobody says how often
HOW = "What should be watched? A task is, for instance, one of these: {forms}. {endings} may stand at its end."
EXAMPLES = (
    "watch page URL for WORDS; watch feed URL; watch url URL; watch port HOST:PORT; watch commits in REPOSITORY; watch"
    " file notes.txt for TODO; watch mail for WORDS; watch folder build; watch folder build older than a day; watch disk above 90 (load, memory,"
    " temperature); watch command df -h; watch exit code of make -C build; watch value of wc -l < log above 100"
)
ENDINGS = "“at most every 10 minutes”, “then say TEXT {change}”, “then do TASK”"


def parse_watch(text: str, asked: bool = False) -> Watch:
    """The watch that a text means, without its beginning; `asked` to be told of it, it says of what. Raises ToolError
    with the question to ask back."""
    subject, then, least = text.strip(), dict[str, str](), 0
    if found := THEN.search(subject):
        then = {found[1].lower(): found[2].strip()}
        subject = subject[: found.start()]
    if found := AT_MOST.search(subject):
        least = int(found[1] or 1) * SECONDS[found[2].lower()]
        subject = subject[: found.start()] + subject[found.end() :]
    subject = subject.strip(" ,;\n")
    named = NAMED.sub(r"file \1\2 ", subject, count=1).strip()  # "the build folder"
    for words in chain((subject, named), (in_english(subject, language) for language in WORDS)):
        for look, form in FORMS.items():
            found = form.fullmatch(words)
            bare = look in ("file", "page", "feed") and found and words.endswith(found["subject"])
            if found and not (asked and bare):
                watch = read_form(look, found.groupdict(""))
                usual = LEAST_OF_MAIL if look == "mail" else LEAST_SECONDS
                return replace(
                    watch, least=least or usual, say=then.get("say", ""), do=then.get("do", "")
                )
    raise ToolError(translated(HOW).format(forms=EXAMPLES, endings=ENDINGS))


def read_form(look: str, words: dict[str, str]) -> Watch:
    """The watch of one of FORMS, by the named parts of the text."""
    subject = (words["subject"] or words.get("address", "")).strip(" \"'")
    if look == "age":
        count = "".join(filter(str.isdecimal, words["count"])) or 1
        limit = int(count) * SECONDS[words["unit"].lower()] / 60
        return Watch("value", AGE.format(path=shlex.quote(subject)), limit=limit, back=limit)
    if look == "value":
        limit, below = figure(words["limit"]), words["way"].lower() in ("below", "under", "<")
        back = limit + (1 if below else -1) * HYSTERESIS * abs(limit)
        back = figure(words["back"]) if words["back"] else back
        command = MEASURES.get(words["measure"].lower(), words["subject"])
        return Watch("value", command, limit=limit, below=below, back=back)
    if look in ("command", "exit"):
        subject = words["subject"]
    if look in ("page", "feed") or (look == "answers" and "/" in subject):
        subject = subject if "://" in subject else f"https://{subject}"
    return Watch(cast(LookKind, look), subject, words.get("pattern", "").strip(" \"'"))


def figure(text: str) -> float:
    """The value of a NUMBER: 1,234 and 1.234,5 have thousands, 0,5 and 1.234 a fraction."""
    if re.fullmatch(f"-?(?:{GROUPED})", text):
        text = text.replace(next(filter(",.".count, text)), "")
    return float(text.replace(",", "."))


def watched(task: str) -> str:
    """What a task orders to watch, by "watch ..." or by asking to be told of what can be watched; "" if neither."""
    patterns = begin_patterns() if len(task) <= MOST_CHARACTERS else ()
    for found in filter(None, (pattern.fullmatch(task) for pattern in patterns)):
        subject, order = found["rest"].strip(" ?\n"), found.groupdict().get("order")
        with suppress(ToolError):
            parse_watch(subject, asked=not order)
            return subject
        if order:
            return subject
    return ""


def orders_watch(message: str, now: datetime) -> bool:
    """Whether a message orders a watch in words that are understood without a model."""
    with suppress(NotUnderstood):
        message = parse_with_task(message, now)[1]
    with suppress(ToolError):
        return not re.search(r"[,;.?!] ", parse_watch(watched(message)).pattern)  # it asks more
    return False


# -- one look -----------------------------------------------------------------


async def look(call: Call, watch: Watch, last: str) -> str:
    """Look at the watch's subject and return its state. Raises ToolError. `last`: the commit, or
    the state of a folder of mail, that was told last."""
    await call.leaves(WATCH, watch.subject)
    known = last if watch.look in ("commits", "mail") else ""
    words = (watch.look, watch.subject, watch.pattern, known)
    script = [*bash_script("schedule/watch.sh"), *words]
    result, _ = await run_command(
        call, watch.subject, script=script, whole=True, acting=watch.look != "answers"
    )
    if result.reason or result.exit_code:
        why = " ".join(clean(result.output).split())[-SHOWN_REASON:]
        raise ToolError(result.reason or why or f"exit code: {result.exit_code}")
    if watch.look == "value" and not FIGURE.search(result.output):
        raise ToolError(translated("It printed no figure."))
    if len(result.output.encode()) > MOST_BYTES:
        form = translated("It is more than {most} KiB: watch a part of it.")
        raise ToolError(form.format(most=MOST_BYTES >> 10))
    return result.output


# -- what changed -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """What a watch has told last, and how its looks went; `of` is the watch in words: another one begins anew."""

    of: str = ""
    last: str | None = None
    looks: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    failure_told: bool = False
    told_at: float = 0.0


FIGURE = re.compile(NUMBER)
OVER = "over"  # the `last` of a figure that is beyond its limit
KEPT_ENTRIES = 1000  # of a feed


def compare(watch: Watch, last: str | None, output: str) -> tuple[str, str]:
    """Compare an output with the `last` state; return the new state and the difference, "" for none."""
    if watch.look == "commits":
        head, _, new = output.partition("\n")
        form = translated("The newest commit is {commit} again.")
        change = shortened(new.splitlines()) or form.format(commit=head[:10])
        return head, "" if last in (None, head) else change
    if watch.look == "mail":
        head, _, new = output.partition("\n")
        return head, "" if last is None else shortened([f"+ {line}" for line in lines_of(new)])
    if watch.look == "value":
        return compare_figure(watch, last == OVER, figure(FIGURE.findall(output)[0]))
    if watch.look == "feed":
        entries = dict(line.partition("\t")[::2] for line in lines_of(output))
        known = dict.fromkeys((last or "").split("\n"))
        fresh = [f"+ {text}" for key, text in entries.items() if key not in known]
        keys = list(dict.fromkeys([*entries, *known]))[:KEPT_ENTRIES]
        return "\n".join(keys), "" if last is None else shortened(fresh)
    if last is None or watch.look == "answers":
        return output, ""
    before, now = Counter(lines_of(last)), Counter(lines_of(output))
    gone = [f"- {line}" for line in (before - now).elements()]
    return output, shortened([*gone, *(f"+ {line}" for line in (now - before).elements())])


def compare_figure(watch: Watch, over: bool, value: float) -> tuple[str, str]:
    """Compare a figure with its limit, as `compare` does; `over`: it was beyond the limit and is not `back` yet."""
    limit = watch.back if over else watch.limit
    now_over = value < limit if watch.below else value > limit
    form = translated("{value}: back to normal.")
    if now_over:
        form = translated(
            "{value} is below {limit}." if watch.below else "{value} is above {limit}."
        )
    change = form.format(value=f"{value:.10g}", limit=f"{watch.limit:.10g}")
    return OVER if now_over else "", change if now_over != over else ""


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in clean(text).splitlines() if line.strip()]


def shortened(lines: list[str]) -> str:
    """Shorten lines to what a message shows."""
    text = "\n".join(lines[:SHOWN_LINES])
    shown = text[:SHOWN_CHARACTERS]
    if rest := len(lines) - len(shown.splitlines()):
        form = plural("… and {count} more line", "… and {count} more lines", rest)
        return f"{shown}\n{form.format(count=rest)}"
    return shown if shown == text else f"{shown} …"


def decide(
    watch: Watch, seen: Seen, output: str, failure: str, now: float
) -> tuple[Seen, str, bool]:
    """The state after a look, what to tell ("" for nothing), and whether something differs that waits to be told.

    `failure`: why it could not look. A failure is told when it lasts, and once.
    """
    early = 0 <= now - seen.told_at < watch.least
    seen = replace(seen, looks=seen.looks + 1)
    if failure:
        count = seen.failed_in_a_row + 1
        seen = replace(seen, failed=seen.failed + 1, failed_in_a_row=count)
        lasts = count >= FAILURES or seen.last is None or watch.look == "answers"
        if seen.failure_told or early or not lasts:
            return seen, "", False
        return replace(seen, failure_told=True, told_at=now), failure, False
    state, change = compare(watch, seen.last, output)
    if watch.look == "answers" and seen.failure_told:
        change = translated("It answers again.")
    seen = replace(seen, failed_in_a_row=0)
    if change and early:
        return seen, "", True
    seen = replace(seen, last=state, failure_told=False)
    return (replace(seen, told_at=now) if change else seen), change, False


# -- the job ------------------------------------------------------------------


@dataclass(frozen=True)
class RunWatch:
    """A JobAction. `look` looks in the chat's sandbox, `message` puts a change in place of {change} in a text,
    `submit` gives a task to the model."""

    store: Store
    look: Callable[[Job, Occurrence, Watch, str], Awaitable[str]]
    submit: Callable[[Job, Occurrence], Awaitable[None]]
    message: Callable[[str, str], str]
    payload: Callable[[str], str]
    slots: Semaphore = field(default_factory=lambda: Semaphore(AT_ONCE))

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        watch = Watch(**job.spec.options[WATCH])
        if occurrence.data:  # it has looked, and was cut off
            await self.hand_on(job, occurrence, watch)
            return
        seen, output, failure = await self.seen(job), "", ""
        try:
            async with self.slots:
                output = await self.look(job, occurrence, watch, seen.last or "")
        except StoreError:
            raise
        except AgentError as error:
            failure = str(error)
        seen, said, waits = decide(watch, seen, output, failure, self.store.clock())
        form = translated("look {looks}, {failed} failed")
        counts = form.format(looks=seen.looks, failed=seen.failed)
        text = ""
        if failure and said:
            text = self.message(f"⚠️ {job.spec.task}\n\n{{change}}", said)
        elif said and not watch.do:
            text = self.message(watch.say or f"👀 {job.spec.task}\n\n{{change}}", said)
        found = failure or translated("changed, to be told later" if waits else "no change")
        detail = counts if said else f"{found} ({counts})"
        payload = self.payload(text) if text else ""
        state = json.dumps(asdict(seen))
        result = LookResult(state, detail, failed=bool(failure), data=said, payload=payload)
        if not await self.store.occurrences.looked(occurrence.id, result):
            return
        if said and not text:
            await self.hand_on(job, replace(occurrence, data=said), watch)
        elif text:
            self.store.outbox.wake()
        elif not failure:
            raise NothingToDo(detail)

    async def seen(self, job: Job) -> Seen:
        known = Seen(**json.loads(await self.store.jobs.seen(job.id) or "{}"))
        return known if known.of == job.spec.task else Seen(of=job.spec.task)

    async def hand_on(self, job: Job, occurrence: Occurrence, watch: Watch) -> None:
        spec = replace(job.spec, task=watch.do)
        await self.submit(replace(job, spec=spec), occurrence)
