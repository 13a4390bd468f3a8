"""Wishes that the program carries out itself while the toy model serves: which tool it calls, and what
the person is told of its result. What a call copies (names, notes, items of a list) it copies exactly.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from pathlib import PurePosixPath
from shlex import quote

from agent.language import translated
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.prompt import context_and_words
from agent.toy import texts
from agent.toy.sums import program_of, sum_of

SHOWN = 1500  # characters of a result
LONGEST = 200  # characters of a wish that is looked at
PATH = r"[\w./-]*\w\.\w{1,6}"
POLITE = r"^(?:(?:please|can you|could you|would you|hey|ok|and|so|now|also|then)[, ]+)*"
IT = r"\b(rename|copy|duplicate|move|delete|remove|erase|send(?: me)?|give me|show(?: me)?|read|open|print|sort|does|to|of|in|from) (?:it|(?:this|that|the) file)\b(?!')"
SUFFIXES = (".txt", ".md")  # that a file may be given without being asked for
FEW_WORDS = 4
GROUNDED = 0.7  # of what is written down must have been said


@dataclass(frozen=True, slots=True)
class Carried:
    """What the program does about a wish: an `answer`, or a `call` of whose result `tells` makes the answer."""

    answer: str = ""
    call: ToolCall | None = None
    tells: Callable[[str], str] = str


def carried(messages: Sequence[Message]) -> Carried | None:
    """What the program does about the last message, a person's; None where the model is to try."""
    last = messages[-1]
    assert isinstance(last, User)
    head, said = context_and_words(last.text)
    words = " ".join(said.replace("’", "'").strip("?!. ").split())
    words = re.sub(r"(?i)\b(what|where|who|when|how)s\b", r"\1's", words)
    if not words or len(words) > LONGEST or "\n" in said or "\nfile: " in f"\n{head}":
        return None
    named = spelled_out(messages, words)
    kinds = (of_days(head, words), of_lists(messages, words), of_shell(said), of_files(named), of_repository(words))  # fmt: skip
    return next(filter(None, kinds), None) or by_command(named) or of_notes(messages, words)


def spelled_out(messages: Sequence[Message], words: str) -> str:
    """The words with the file of the previous exchange in place of "it"."""
    asked = [n for n, each in enumerate(messages) if isinstance(each, User)]
    if len(asked) < 2:
        return words
    calls = (c for each in messages[asked[-2] :] if isinstance(each, Assistant) for c in each.calls)
    paths = [found for call in calls for found in re.findall(PATH, call.arguments)]
    paths += re.findall(r"(?m)^file: (\S+) \(", context_and_words(messages[asked[-2]].text)[0])
    if not paths:
        return words
    return re.sub(IT, lambda found: f"{found[1]} {paths[-1]}", words, count=1, flags=re.IGNORECASE)


QUOTED = POLITE + r"(?:run|execute):? `([^`]+)`(?: for me)?(?: please)?[.!]?$"


def of_shell(said: str) -> Carried | None:
    """A command behind a "$", or in backticks with a request to run it."""
    if not (found := re.match(QUOTED, said, re.IGNORECASE) or re.match(r"^\$ (\S.*)$", said)):
        return None
    return by_bash(found[1], in_columns)


def call_of(name: str, **arguments: str) -> ToolCall:
    return ToolCall("", name, json.dumps(arguments, ensure_ascii=False))


def only(words: str, allowed: str) -> set[str]:
    """The words, if all are allowed ones; else none."""
    said = set(re.findall(r"[\w']+", words.lower()))
    return said if said <= set(allowed.split()) else set()


def result_of(text: str) -> str:
    """A tool's result for a person, shortened where it is long."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def in_columns(text: str) -> str:
    """A tool's result; several lines become a block of code, which keeps their columns."""
    shown = result_of(text)
    return f"```\n{shown}\n```" if "\n" in shown and "```" not in shown else shown


def by_bash(command: str, tells: Callable[[str], str] = result_of) -> Carried:
    """A wish that a command carries out; `tells` makes the answer of its output."""
    return Carried(call=call_of("bash", command=command), tells=tells)


# -- days ---------------------------------------------------------------------

IN_DAYS = (
    POLITE
    + r"(?:what|which)(?:'s|s| is| was| will)?(?: the)? (?:day|date|weekday)\b(?: of the week)?(?: is| was| will| it| be| do we have)*(?: in)? (\d{1,4}) (days?|weeks?)(?: from (?:now|today)| (ago))?$"
)


def of_days(head: str, words: str) -> Carried | None:
    said = only(
        words,
        "what what's whats which is it was will be the day date weekday of week s and tell me please"
        " after before tomorrow tomorrow's yesterday yesterday's do we have so",
    )
    now = re.search(r"(?m)^now: \w+ (\d{4}-\d\d-\d\d) ", head)
    if now and (found := re.match(IN_DAYS, words, re.IGNORECASE)):
        days = int(found[1]) * (7 if found[2].lower().startswith("week") else 1)
        return day_of(now[1], -days if found[3] else days)
    if not now or not said & {"day", "date", "weekday"}:
        return None
    for names, days in (({"tomorrow", "tomorrow's"}, 1), ({"yesterday", "yesterday's"}, -1)):
        if said & names:
            twice = 2 if said & {"after", "before"} else 1
            return day_of(now[1], days * twice)
    return None


def day_of(today: str, days: int) -> Carried:
    when = date.fromisoformat(today) + timedelta(days=days)
    return Carried(f"{when:%A}, {when.day} {when:%B %Y}")


# -- sums -----------------------------------------------------------------------


def of_sum(words: str) -> Carried | None:
    if not (asked := sum_of(words)):
        return None

    def told(text: str) -> str:
        worked = re.fullmatch(r"-?[\d.e+]+", text.strip())
        return f"{asked} = {worked[0]}" if worked else translated(texts.UNSURE)

    return by_bash(f"python3 -c {quote(program_of(asked))}", told)


# -- lists, each a file with a line for each item --------------------------------

KIND = r"(to-?do|shopping|packing|grocery|groceries|task|check|reading|wish)"
NEW_LIST = POLITE + (
    r"(?:(?:make|start|create|write|begin|set up|give|i need|i want|new)(?: me)?\b)(?: a| an| my| the| new)*"
    rf" (?:{KIND}[- ]?)?list(?: for (?:me|today|tomorrow|the \w+))?(?: with| of|:| -|,)* (.+)$"
)
ADD = POLITE + (
    r"(?:put|add|append|write(?=.*\blist\b))(?: also)?:? (.+?)(?: too| as well| also)?"
    rf"(?: (?:to|on|onto|in) (?:it|(?:the|my|our|that) (?:{KIND}[- ]?)?list))?(?: too| as well| also)?(?: please)?$"
)
SHOW = POLITE + (
    r"(?:show|read|see|display|give|tell|what(?:'s| is| are|s)?)\b(?: me)?(?: still| left| open)*(?: on| in)?"
    rf"(?: the| my| our| that| whole)* (?:{KIND}[- ]?)?list(?: (?:again|now|please))*$"
)
TICK = POLITE + (
    rf"(?:mark|tick|check|cross|set)(?: off)? (.+?)(?: as)? (?:done|off|finished|complete)(?: (?:on|in|from) (?:the|my) (?:{KIND}[- ]?)?list)?$"
)
STRIKE = POLITE + (
    rf"(?:remove|delete|take|drop|strike) (.+?) (?:off|from|out of) (?:it|(?:the|my|our|that) (?:{KIND}[- ]?)?list)$"
)
MORE = r"^(?:also|and also|plus)[,:]? (?:add )?(?!what|who|when|where|how|why|is |are |do |can |could |tell|show|list|read|send|write|remind|remember|delete|remove)(.+)$"
DONE = r"^(?!that|this|it\b|what|how)(.+?) (?:is|are) (?:done|bought|finished)$"
GONE = (
    POLITE
    + r"(?:remove|delete|drop|strike|take off) (?:the )?(?!last|first|it$|all|everything|file|that|this)(.+)$"
)
LIST_FILE = r"(?:todo|shopping|packing|grocery|groceries|task|check|reading|wish)\.txt"


def of_lists(messages: Sequence[Message], words: str) -> Carried | None:
    if re.search(PATH, words):  # a file that is named is the tools' to find
        return None
    known = newest_list(messages)
    if found := re.match(NEW_LIST, words, re.IGNORECASE):
        return lines_added(list_file(found[1]), items(found[2]))
    if found := re.match(SHOW, words, re.IGNORECASE):
        name = list_file(found[1], known)
        command = f"cat {name} 2>/dev/null || echo There is no {name} yet."
        return by_bash(command, headed(name)) if found[1] or known else None
    if found := re.match(ADD, words, re.IGNORECASE):
        named = found[2] or re.search(r"\blist\b", words, re.IGNORECASE)
        if (named or known) and not re.search(r"\b(?:line|file|note)\b", found[1]):
            return lines_added(list_file(found[2], known), items(found[1]))
    if list_before(messages) and (found := re.match(MORE, words, re.IGNORECASE)):
        return lines_added(known, items(found[1]))
    words = more_plainly(words) if list_before(messages) else words
    for form, edit in ((TICK, "s/^- \\[ \\] {item}$/- [x] &/I;s/- \\[x\\] - \\[ \\]/- [x]/"), (STRIKE, "/^- \\[.\\] {item}$/Id")):  # fmt: skip
        if (found := re.match(form, words, re.IGNORECASE)) and (found[2] or known or "list" in words):  # fmt: skip
            name = list_file(found[2], known)
            item = re.sub(r"([][\\.*^$/])", r"\\\1", found[1].strip())
            return list_shown(name, f"sed -i {quote(edit.format(item=item))} {name}")
    return None


def more_plainly(words: str) -> str:
    """Words about an item that follow its list, with the list named."""
    if found := re.match(DONE, words, re.IGNORECASE):
        return f"mark {found[1]} as done"
    if not re.match(STRIKE, words, re.IGNORECASE) and (found := re.match(GONE, words, re.IGNORECASE)):  # fmt: skip
        return f"remove {found[1]} from the list"
    return words


def list_before(messages: Sequence[Message]) -> bool:
    """Whether the previous exchange was about a list."""
    asked = [n for n, each in enumerate(messages) if isinstance(each, User)]
    return len(asked) > 1 and newest_list(messages[asked[-2] :]) != ""


def newest_list(messages: Sequence[Message]) -> str:
    """The list that this conversation last spoke of; "" for none."""
    calls = (call for each in reversed(messages) if isinstance(each, Assistant) for call in each.calls)  # fmt: skip
    found = (re.search(rf"\b{LIST_FILE}", call.arguments) for call in calls)
    return next((each[0] for each in found if each), "")


def list_file(kind: str | None, known: str = "") -> str:
    name = (kind or "").lower().replace("-", "").replace("groceries", "grocery")
    if name == "grocery" and known == "groceries.txt":
        return known
    return f"{name}.txt" if name else known or "todo.txt"


def items(text: str, between: str = r",|;|\band\b") -> list[str]:
    """The things that are enumerated."""
    parts = re.split(rf"\s*(?:{between})\s*", text)
    return [part.strip(" .!\"'") for part in parts if part.strip(" .!\"'")]


def lines_added(name: str, new: Sequence[str]) -> Carried | None:
    if not new:
        return None
    lines = " ".join(quote(f"- [ ] {item}") for item in new)
    return list_shown(name, f"printf '%s\\n' {lines} >> {name}")


def list_shown(name: str, first: str) -> Carried:
    return by_bash(f"touch {name} && {first} && cat {name}", headed(name))


def headed(name: str) -> Callable[[str], str]:
    """Tells a file's content under its name."""
    return lambda text: f"{name}:\n{result_of(text)}"


# -- files --------------------------------------------------------------------

LISTING = (
    "what what's whats which file files are is here there in this the my your folder directory workspace list"
    " show me all every everything please can could you of do does i have see ls a give current documents tell"
)
FOLDER = POLITE + (
    r"(?:what(?:'s|s| is| files are)? in|list|show(?: me)?|what does)(?: the| my)?(?: files in| content of)?(?: the| my)?"
    r" (?:folder|directory) ([\w./-]+)(?: contain| hold)?$"
)
READING = (
    POLITE + rf"(?:show|read|open|print|cat|display)(?: me)?(?: the)?(?: file| contents?(?: of)?)* ({PATH})(?: to me)?(?: please)?$",
    POLITE + rf"what (?:does|do)(?: the| my)?(?: file)? ({PATH}) (?:say|contain|hold)$",
    POLITE + rf"what(?:'s|s| is) in(?: the| my)?(?: file)? ({PATH})$",
)  # fmt: skip


APPENDING = POLITE + (
    r"(?:append|add)(?: (?:the|a|another|one more))?(?: (?:line|text|words?))*(?: saying| that says| with|:)*"
    rf" [\"“']?(.+?)[\"”']? to (?:the )?(?:end of )?(?:the )?(?:file )?({PATH})$"
)
SENDING = POLITE + rf"(?:send|give)(?: me)?(?: the)?(?: file)? ({PATH})(?: to me)?(?: please)?$"


def of_files(words: str) -> Carried | None:
    if found := re.match(SENDING, words, re.IGNORECASE):
        call = call_of("send_file", path=found[1])
        return Carried(call=call, tells=lambda text: f"Done: {text}" if text.startswith("sent") else text)  # fmt: skip
    if found := re.match(APPENDING, words, re.IGNORECASE):
        return line_appended(found[2], found[1])
    if found := re.match(rf"{POLITE}is there (?:a|an|any) (?:file )?(?:called|named)? ?({PATH})(?: here)?$", words, re.IGNORECASE):  # fmt: skip
        return Carried(call=call_of("list_files", pattern=found[1]), tells=result_of)
    said = only(words, f"{LISTING} how many")
    asked = said & {"list", "show", "what", "what's", "whats", "which", "ls", "give", "see", "many", "tell"}  # fmt: skip
    if asked and said & {"files", "everything", "ls", "documents", "folder", "directory", "workspace", "all", "here"}:  # fmt: skip
        return Carried(call=call_of("list_files", pattern="*"), tells=counted)
    if found := re.match(FOLDER, words, re.IGNORECASE):
        call = call_of("list_files", pattern="*", path=found[1])
        return Carried(call=call, tells=result_of)
    for form in READING:
        if found := re.match(form, words, re.IGNORECASE):
            return Carried(call=call_of("read_file", path=found[1]), tells=result_of)
    return None


def line_appended(path: str, line: str) -> Carried:
    """Append a line, also where the file's last line has no line break."""
    file = quote(path)
    ended = f'[ ! -s {file} ] || [ -z "$(tail -c1 {file})" ] || echo >> {file}'
    command = f"{ended}; printf '%s\\n' {quote(line)} >> {file}; cat {file}"
    return by_bash(command, headed(path))


def counted(listing: str) -> str:
    """The names of a listing, with their number where there are several."""
    if listing.startswith("No file "):
        return translated(texts.NO_FILES)
    names = listing.splitlines()
    return result_of(f"{listing}\n\n({len(names)})" if len(names) > 1 else listing)


# -- repositories ---------------------------------------------------------------

ABOUT = (
    "summarise summarize summary sum up of this the my repo repository project describe overview what what's is in"
    " about tell me please give a an short can could you explain happened changed here has been going on latest"
    " last newest commit commits was show recent who made git log which branch am i on are we current checked out"
)
FACTS = (
    'for r in . /repos/*; do git -C "$r" log -1 >/dev/null 2>&1 || continue;'
    ' echo "$r, branch $(git -C "$r" branch --show-current), $(git -C "$r" rev-list --count HEAD) commits, the newest:";'
    " git -C \"$r\" log -5 --date=short --format='%h %ad %an: %s';"
    ' echo "$(git -C "$r" ls-files | wc -l) files, changed and not committed: $(git -C "$r" status --short | wc -l)"; done'
)


def of_repository(words: str) -> Carried | None:
    said = only(words, ABOUT)
    if not said & {"repo", "repository", "project", "commit", "commits", "branch", "log"}:
        return None
    if not said & {"summarise", "summarize", "summary", "sum", "overview", "describe", "explain", "about", "what", "what's", "which", "show", "who", "log", "tell"}:  # fmt: skip
        return None

    def told(text: str) -> str:
        return result_of(text) if "branch" in text else translated(texts.NO_REPOSITORY)

    return by_bash(FACTS, told)


# -- what one command tells or does -------------------------------------------

COMMANDS = (
    (rf"\b(?:compare|diff|differences? between)\b.*?({PATH}) (?:and|with|to|from) ({PATH})$", "if diff -u {0} {1}; then echo 'They are the same.'; fi; true"),
    (rf"^(?:how many|count)\b.*\b(?:lines|rows|entries)\b.*?({PATH})(?: have| has)?$", "wc -l {0}"),
    (rf"^(?:how many|count)\b.*\bwords\b.*?({PATH})(?: have| has)?$", "wc -w {0}"),
    (rf"\b(?:first|top) (\d+) (?:lines|rows) (?:of|in|from) ({PATH})$", "head -n {0} {1}"),
    (rf"\b(?:last|bottom) (\d+) (?:lines|rows) (?:of|in|from) ({PATH})$", "tail -n {0} {1}"),
    (rf"^sort (?:the (?:file|lines (?:in|of)) )?({PATH})(?: alphabetically| by name)?$", "sort {0}"),
    (rf"^(?:delete|remove|erase|get rid of) (?:the file )?({PATH})(?: please)?$", "rm -v -- {0}"),
    (rf"^rename ({PATH}) (?:to|into|as) ({PATH})$", "mv -nv -- {0} {1}"),
    (rf"^(?:copy|duplicate|(?:make|create) a (?:copy|duplicate) of) ({PATH}) (?:to|into|as|called|named) ({PATH})$", "cp -nv -- {0} {1}"),
    (rf"^move ({PATH}) (?:to|into|in) (?:the |my )?(?:folder |directory )?([\w./-]+)$", "mkdir -p {1} && mv -nv -t {1} -- {0}"),
    (rf"^(?:make|create|write|touch) (?:an?|the|my) (?:new )?empty (?:text )?file (?:called |named )?({PATH})$", "touch {0} && ls -l {0}"),
    (rf"^when was (?:the (?:file )?)?({PATH}) (?:last )?(?:changed|modified|edited|updated|written)$", "date -r {0} '+%A %Y-%m-%d %H:%M'"),
    (r"^(?:what|which) version of ([\w+-]+) (?:do you have|have you got|is (?:installed|there|this|here)|do i have)$", "{0} --version || {0} -v"),
    (r"\b(?:biggest|largest)\b.*\bfiles?\b|\bfiles?\b.*\b(?:biggest|largest)\b", "find . -type f -not -path '*/.git/*' -printf '%s bytes  %P\\n' | sort -rn | head -5"),
    (r"^how (?:big|large) is (?:this|the|my) (?:whole )?(?:folder|directory|workspace)$", "du -sh ."),
    (r"^(?:what|which)\b.*\b(?:cpu|processor)\b(?!.*\b(?:load|busy|usage|doing)\b)", "grep -m1 'model name' /proc/cpuinfo; echo \"$(nproc) cores\""),
    (r"^(?:what|which)\b.*\b(?:linux|operating system|os|distro|distribution)\b", '. /etc/os-release; echo "$PRETTY_NAME, Linux $(uname -r)"'),
    (r"^(?:is|what|which|do)\b.*\b(?:gpu|graphics card)\b", "grep '^gpu' /host.txt"),
    (r"^(?:who|what user|which user)\b.*\blogged in\b", "id -un"),
    (r"^(?:is|do you have|have you got|is there) ([\w+-]+) (?:installed|here|available)$", "command -v {0} || echo {0} is not installed"),
)  # fmt: skip


def by_command(words: str) -> Carried | None:
    for form, command in COMMANDS:
        if found := re.search(form, re.sub(POLITE, "", words, flags=re.IGNORECASE), re.IGNORECASE):
            filled = command.format(*map(quote, found.groups())) if found.groups() else command
            return by_bash(filled)
    return None


# -- notes --------------------------------------------------------------------

MINE = "name birthday address job age phone wife husband partner dog's cat's sister's brother's mother's father's mum's dad's mom's son's daughter's boss boss's colour color food"
REMEMBER = (
    POLITE + r"(?:remember|note|keep in mind|don't forget|make a note|memori[sz]e)(?: this| it)?(?: that|:|,)* (?!to |when |what |how |me\b|my name is$)(.+)$",
    POLITE + r"(.+?)[,;.:]? (?:and )?(?:please )?(?:remember (?:it|that|this)|keep (?:it|that|this) in mind|don't forget (?:it|that|this)|make a note of (?:it|that))(?: please)?$",
    POLITE + r"((?:my name is|call me|i am called|my name's) \w+(?: from now on)?)$",
    POLITE + rf"(my (?:favou?rite \w+|(?:\w+'s )?(?:{'|'.join(MINE.split())})) (?:is|are) (?!not\b).+)$",
)  # fmt: skip
ASKED_BACK = r"^(?:(?:so|and|hey|please|do you (?:still )?(?:know|remember)|can you tell me|tell me)[, ]+)*(?:what|when|where|who|which|how)\b"
MY_NAME = r"\b(?:my name|am i called|my name's)\b|^who am i$"
NAMED = r"(?i)\bmy name(?: is|'s)\b|\bcall me\b|\bi am called\b"
NEVER_TOLD = r"^(?:what(?:'s|s| is)|when(?:'s| is)|where(?:'s| is)|who(?:'s| is)|do you (?:know|remember)) my (?:[\w']+ )?[\w']+$|^where do i (?:live|work)$|^who am i$"
ALL_NOTES = r"^(?:(?:so|and|please|tell me)[, ]+)*(?:what (?:do you (?:know|remember)(?: about me)?(?: so far)?|have you (?:noted|remembered|saved)|did i (?:tell|ask) you(?: to remember)?|notes (?:do you have|are there|have you))|(?:show|list)(?: me)?(?: all)?(?: my| your| the)? notes)$"
SMALL = frozenset("what when where who which how is are was were do does did the a an my i me our we in at on of to for it its s you your that this know remember tell told said have has".split())  # fmt: skip


def of_notes(messages: Sequence[Message], words: str) -> Carried | None:
    asked = words.lower()
    for form in REMEMBER:
        if found := re.match(form, words, re.IGNORECASE):
            return Carried(call=call_of("remember", note=found[1]), tells=result_of)
    kept = notes_in(messages)
    if re.search(ALL_NOTES, asked):
        lines = "\n".join(f"- {note}" for note in kept) or translated(texts.NO_NOTES)
        return Carried(f"{lines}\n\n{translated(texts.COMMANDS)}" if kept else lines)
    told = ""
    if re.search(MY_NAME, asked):
        told = next((note for note in reversed(kept) if re.search(NAMED, note)), "")
    elif re.search(ASKED_BACK, asked):
        told = closest(content(words), kept)
    if told:
        return Carried(translated(texts.TOLD).format(note=told))
    if re.search(NEVER_TOLD, asked) and (set(asked.split()) & set(MINE.split()) or not re.search(r"\bmy\b", asked)):  # fmt: skip
        return Carried(translated(texts.NO_NOTES))
    return None


def notes_in(messages: Sequence[Message]) -> list[str]:
    """The notes that this conversation has seen or saved, the newest last."""
    kept: dict[str, None] = {}
    for each in messages:
        for note in chain(shown_notes(each), saved_notes(each)):
            kept.pop(note, None)
            kept[note] = None
    return list(kept)


def shown_notes(message: Message) -> Iterator[str]:
    if isinstance(message, User):
        lines = context_and_words(message.text)[0].partition("\nnotes:\n")[2].splitlines()
        for line in lines:
            if not (found := re.match(r"- (.+) \(\d{4}-\d\d-\d\d\)$", line)):
                return
            yield found[1]


def saved_notes(message: Message) -> Iterator[str]:
    if isinstance(message, Assistant):
        for call in message.calls:
            if call.name == "remember":
                yield str(arguments_of(call).get("note", ""))


def closest(asked: set[str], kept: Sequence[str]) -> str:
    """The note that has most of the words asked for, and more than half of them; "" for none."""
    shares = [(len(asked & content(note)) / len(asked), n) for n, note in enumerate(kept)] if asked else []  # fmt: skip
    share, number = max(shares, default=(0.0, 0))
    return kept[number] if share > 0.5 else ""


def content(text: str) -> set[str]:
    """The words that carry meaning, without a plural's ending."""
    said = re.findall(r"[^\W_]+", text.lower().replace("'s", "").replace("’s", ""))
    said = ["name" if word in ("called", "named") else word for word in said]
    return {word.rstrip("s") or word for word in said if word not in SMALL}


# -- what the model does ------------------------------------------------------------

# A command of the machine's, and stems of words of which a person says one who means it.
MEANT = (
    (r"\bdf\b", "disk drive space stor room full free capacity ssd hdd partition volume gb gigabyte left"),
    (r"\bfree\b|meminfo", "mem ram swap"),
    (r"\buptime -p|\buptime -s", "up boot start long since awake on restart reboot"),
    (r"\buptime\b(?! -)|loadavg", "load busy cpu stress average work idle hard processor"),
    (r"\buname\b", "kernel linux system os version uname release"),
    (r"\bhostname\b", "host name call machine computer box"),
    (r"(?<!-)\bdate\b", "time date day clock today now month year hour week late calendar"),
    (r"\bnproc\b|lscpu", "core cpu processor thread"),
    (r"\bwhoami\b|\bid\b", "who user account whoami login logged"),
    (r"\bpwd\b", "where folder dir path pwd place"),
)  # fmt: skip
FUNCTIONS = frozenset("python3 c print round abs sqrt math import int divmod sum max min pow".split())  # fmt: skip


def arguments_of(call: ToolCall) -> dict[str, object]:
    try:
        given = json.loads(call.arguments)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def invented(call: ToolCall, messages: Sequence[Message]) -> bool:
    """Whether a call is about something that nobody has said: a file, a note, a time, a sum."""
    heard = " ".join(heard_in(messages)).lower()
    given = {name: str(value).lower() for name, value in arguments_of(call).items()}
    said = context_and_words(last_words(messages))[1]
    only_looks = re.match(LOOKS, said, re.IGNORECASE) is not None
    if call.name == "bash":
        targets = re.findall(r">\s*(?!/dev/null)([\w./-]*\w)", given.get("command", ""))
        if any(only_looks or each not in heard for each in targets):
            return True
        return not meant(given.get("command", ""), heard, newly_said(messages))
    if only_looks and call.name in ("write_file", "edit_file"):
        return True
    if call.name in ("remember", "schedule") and pasted(said):
        return True
    if call.name == "write_file" and re.search(r"(?i)\b(?:from|of) (?:it|that|this)\b", said):
        return True
    words = re.findall(r"[^\W_]+", said.lower())
    if stems := SAID_FOR.get(call.name):
        return not any(word.startswith(stem) for word in words for stem in stems.split())
    if call.name == "edit_file" and given.get("old") == given.get("new"):
        return True
    if (repo := given.get("repo", ".")) != "." and repo not in heard:
        return True
    path = PurePosixPath(given.get("path", "."))
    if path.name and path.name not in heard and not (path.stem in heard and path.suffix in SUFFIXES):  # fmt: skip
        return True
    if call.name == "edit_file" and not {path.name, path.stem} & set(re.findall(r"[\w.-]*\w", said.lower())) and not re.search(SPOKEN_OF, said, re.IGNORECASE):  # fmt: skip
        return True
    if path.name and path.name in given.get("content", ""):  # the wish itself, not what is wished
        return True
    spoken = set(re.findall(r"[^\W_]+", heard))
    if any(not grounded(given.get(name, ""), set(words)) for name in ("note", "task")) and not {"it", "this", "that"} & set(words):  # fmt: skip
        return True  # they are about what was said just now, if of nothing else
    written = " ".join(given.get(name, "") for name in ("content", "note", "task", "when", "message", "new", "old"))  # fmt: skip
    return not grounded(written, spoken)


def pasted(said: str) -> bool:
    """Whether a message is data, or several lines of which the first does not ask to keep them."""
    first, _, more = said.strip().partition("\n")
    keeps = re.search(
        r"\b(?:remember|remind|note|mind|forget|memori|save|keep|store|learn)", first.lower()
    )
    return first.startswith(("{", "[", "<")) or bool(more and not keeps)


def grounded(text: str, spoken: Set[str]) -> bool:
    """Whether most words of the text were said."""
    new = re.findall(r"[^\W_]+", text)
    return not new or sum(word in spoken for word in new) >= GROUNDED * len(new)


def newly_said(messages: Sequence[Message]) -> str:
    """A person's last message; with the one before it where it is short."""
    said = [context_and_words(each.text)[1].lower() for each in messages if isinstance(each, User)]
    few = bool(said) and len(said[-1].split()) <= FEW_WORDS
    return " ".join(said[-2:] if few else said[-1:])


def last_words(messages: Sequence[Message]) -> str:
    """A person's last message."""
    return next((each.text for each in reversed(messages) if isinstance(each, User)), "")


# How one begins who wants to know something, not to have it written.
LOOKS = (
    POLITE
    + r"(?:watch|monitor|tell me|show|count|sum|total|add up|find|how|what|which|who|when|where|why|is|are|does|did|has|have|read|explain|compare|check|look|search)\b"
)
SPOKEN_OF = r"\b(?:it|there|(?:the|that|this) file)\b"  # a file that was named before
# What is said by one who means the tool.
SAID_FOR = {
    "grep": "find search look grep where which contain mention occur any line anywhere word",
    "recall": "remember recall note told said say talk know mention earlier yesterday last my i me",
    "send_file": "send give share get attach upload want have download forward post bring pass file",
}


SUMS = r"[-+*/%^×÷=]|\dx\d|\d x \d|\b(?:plus|minus|times|divided?|over|sum|add(?:ed)?|subtract|multipl\w*|percent|average|mean|half|double|twice|triple|squared?|root|power|total|mod|remainder|difference|product|calculate|compute|how much is|what is|what's)\b"


def meant(command: str, heard: str, asked: str) -> bool:
    """Whether something said asks for this command; for a sum, whether its figures were said."""
    if "python3 -c" in command:
        names = set(re.findall(r"[a-z]\w*", command)) - FUNCTIONS
        figures = Counter(n for n in re.findall(r"\d+", command) if n not in ("3", "100"))
        sum_asked = re.search(SUMS, asked) is not None
        back = re.search(r"\b(?:it|that|this|them|result)\b", asked)
        return (
            sum_asked
            and not names
            and figures <= Counter(re.findall(r"\d+", heard if back else asked))
        )
    for form, stems in MEANT:
        if re.match(form, command):
            said = re.findall(r"[^\W_]+", asked)
            return any(word.startswith(stem) for word in said for stem in stems.split())
    return True


# Of these the model tells the result in the result's own words, and in few besides.
TELLING = {"schedule", "remember", "recall", "write_file", "edit_file", "send_file", "git_commit"}
OWN_WORDS = "done saved noted ok i found it is was you told me said we talked of about that the a an on nothing"


def heard_in(messages: Sequence[Message]) -> Iterator[str]:
    """What people have said and tools returned in this conversation."""
    for each in messages:
        if isinstance(each, User):
            head, words = context_and_words(each.text)
            yield words
            yield from re.findall(r"(?m)^(?:file|reply to): (.*)$", head)
        elif isinstance(each, ToolResult):
            yield each.text


def misquoted(answer: str, messages: Sequence[Message]) -> bool:
    """Whether an answer after a tool's result has a figure that neither the result nor the person gave, or
    hides a failure."""
    last = messages[-1]
    assert isinstance(last, ToolResult)
    if last.name == "schedule" and not last.text.startswith("Planned"):
        return True
    heard = " ".join(heard_in(messages))
    if last.name in TELLING and not set(re.findall(r"[^\W_]+", answer.lower())) <= {*re.findall(r"[^\W_]+", heard.lower()), *OWN_WORDS.split()}:  # fmt: skip
        return True
    if re.search(r"(\w{2,})\1{2,}", answer):  # one piece again and again
        return True
    asked = context_and_words(last_words(messages))[1].lower()
    if answer.strip(" .!").lower() in asked:  # the question's own words
        return True
    if any(mark in answer and mark not in heard for mark in ('"}', '{"', "<|", "</")):
        return True
    figures = (each.strip(".,:;!?()\"'*`%") for each in answer.split() if re.search(r"\d", each))
    return any(figure not in heard for figure in figures)


def failed(result: ToolResult) -> bool:
    """Whether a command failed through the model's own mistake."""
    return result.name == "bash" and re.search(r"(?m)^Traceback|^\w+Error: |^\S+: (?:invalid|unrecogni[sz]ed|illegal|extra operand)|--help' for more|^exit code: (?:2|126|127)$", result.text) is not None  # fmt: skip
