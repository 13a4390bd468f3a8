"""What makes a call right and an answer hold its value: by what they do, not by their wording."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pocket.evaluation import arithmetic
from pocket.evaluation.case import AnswerCheck, Before, CallCheck, Played, Step, Wanted
from pocket.evaluation.machine import facts
from pocket.evaluation.when import understand
from pocket.evaluation.world import place

SHOWN_BY = {
    "disk": r"\bdf\b|host\.txt",
    "memory": r"\bfree\b|meminfo|host\.txt",
}  # for what prints sizes
REFUSAL = re.compile(r"only a demonstration model", re.I)
NO_REPLY = re.compile(rf"{REFUSAL.pattern}|no tool for that", re.I)  # to a greeting or thanks
_UNITS = {"G": r"\s?G(?:i?B?|igabytes?|ibibytes?)", "M": r"\s?M(?:i?B?|egabytes?)", "T": r"\s?T(?:i?B?|erabytes?)",
          "K": r"\s?[kK](?:i?B?|ilobytes?)", "P": r"\s?P(?:i?B?)", "%": r"\s?(?:%|percent)"}  # fmt: skip


def holds(text: str, *forms: str) -> bool:
    """Whether any of `forms` stands in `text` as a word or figure of its own."""
    plain = re.sub(r"[*`]", "", text).replace("\u2212", "-")
    plain = re.sub(r"(?<=\d)[,'\u202f\u00a0](?=\d{3}(?!\d))", "", plain)
    return any(re.search(_pattern(form), plain, re.I) for form in forms)


def _pattern(form: str) -> str:
    figure = re.fullmatch(r"(\d[\d.]*) ?([KMGTP%])i?B?", form)
    unit = _UNITS[figure[2]] if figure else ""
    inner = re.escape(figure[1]) + unit if figure else r"\s+".join(map(re.escape, form.split()))
    before = r"(?<![\w-])(?<!\d[.,])" if form[:1].isalnum() else ""
    after = r"(?![\w-]|[.,]\d)" if form[-1:].isalnum() else ""
    return before + inner + after


def in_answer(*forms: str) -> AnswerCheck:
    """Any of these."""
    return lambda played: holds(played.answer, *forms)


def all_in_answer(*words: str) -> AnswerCheck:
    return lambda played: all(holds(played.answer, word) for word in words)


def figure(name: str, bare: bool = False) -> Wanted:
    """A figure of the machine: any look at it that prints the figure, and an answer that holds it."""

    shown_by = SHOWN_BY.get(name.split()[0], "")

    def call(step: Step) -> bool:
        looked = str(step.arguments.get("path" if step.name == "read_file" else "command", ""))
        told = step.name == "bash" or looked == "/host.txt"
        shown = step.ok and bool(re.search(shown_by, looked))
        return told and shown and holds(step.result, *facts(step.machine)[name])

    def held(played: Played) -> bool:
        printed = "\n".join(step.result for step in played.steps)
        forms = [f for f in facts(played.machine)[name] if not played.steps or holds(printed, f)]
        return holds(played.answer, *forms)

    return Wanted(call, held, bare=bare)


def retried_figure(name: str) -> Wanted:
    """The same, where the usual command is not there."""
    wanted = figure(name)
    return Wanted(wanted.call, wanted.held, before="failure")


def total(result: str) -> Wanted:
    """A sum: any command that works it out."""

    def call(step: Step) -> bool:
        worked_out = arithmetic.output(str(step.arguments.get("command", "")))
        return step.name == "bash" and holds(worked_out or "", result)

    return Wanted(call, in_answer(result))


def reads(path: str, *values: str, before: Before = "nothing") -> Wanted:
    """Prints the file's lines that hold `values`; the answer holds them all."""

    def call(step: Step) -> bool:
        named = place(str(step.arguments.get("path", ""))) == path
        shown = (step.name == "read_file" and named) or (
            step.name == "bash" and path in str(step.arguments)
        )
        return shown and step.ok and all(value in step.result for value in values)

    return Wanted(call, all_in_answer(*values), before)


def lists(*names: str, others: Sequence[str] = ()) -> Wanted:
    """Lists all of `names` and none of `others`; the answer names them."""

    def call(step: Step) -> bool:
        listing = step.name in ("list_files", "bash") and step.ok
        return (
            listing
            and all(_short(n) in step.result for n in names)
            and not any(o in step.result for o in others)
        )

    return Wanted(call, lambda played: all(_short(name) in played.answer for name in names))


def _short(name: str) -> str:
    return name.rstrip("/").split("/")[-1]


def finds(word: str, *values: str, before: Before = "nothing") -> Wanted:
    """Searches for `word` and hits the lines with `values`; the answer holds all of them."""

    def call(step: Step) -> bool:
        asked = str(step.arguments.get("pattern", step.arguments.get("command", "")))
        core = re.sub(r"\\(.)", r"\1", asked).lower()
        searched = step.name == "grep" or (step.name == "bash" and "grep" in asked)
        return (
            searched
            and step.ok
            and word.lower() in core
            and all(value in step.result for value in values)
        )

    return Wanted(
        call, lambda played: all(_short(v).lower() in played.answer.lower() for v in values), before
    )


def leaves(path: str, right: Callable[[str], bool], *named: str, tools: Sequence[str] = ("write_file", "edit_file", "bash"),
           before: Before = "nothing") -> Wanted:  # fmt: skip
    """A call after which the file's text is right; the answer names the file or one of `named`."""

    def call(step: Step) -> bool:
        return step.name in tools and step.ok and path in step.files and right(step.files[path])

    return Wanted(call, in_answer(path, _short(path), *named), before)


def edits(path: str, text: str, new: str, before: Before = "look") -> Wanted:
    """The file's text is `text` afterwards, but for space; the answer names it, or what is new."""
    wanted = "".join(text.split())
    return leaves(path, lambda content: "".join(content.split()) == wanted, new, before=before)


def same(text: str) -> Callable[[str], bool]:
    """The text itself, but for space and quotes around it."""
    return lambda content: _bare(content) == _bare(text)


def words(*parts: str) -> Callable[[str], bool]:
    """Each of `parts`, in this order, whatever stands between."""
    pattern = re.compile(".*".join(re.escape(p.lower()) for p in parts), re.S)
    return lambda content: bool(pattern.search(content.lower()))


def _bare(text: str) -> str:
    return " ".join(text.strip().strip("\"'").strip().lower().rstrip(".").split())


def status(repo: str, *values: str, before: Before = "nothing") -> Wanted:
    return Wanted(_repository("git_status", repo), all_in_answer(*values), before)


def difference(repo: str, *values: str, before: Before = "nothing") -> Wanted:
    return Wanted(_repository("git_diff", repo), all_in_answer(*values), before)


def clean(repo: str) -> Wanted:
    """A status of a repository in which nothing has changed."""
    plain = re.compile(r"clean|nothing|no (?:local |uncommitted |pending )?changes|unchanged", re.I)
    return Wanted(_repository("git_status", repo), lambda played: bool(plain.search(played.answer)))


def _repository(tool: str, repo: str) -> CallCheck:
    def call(step: Step) -> bool:
        given = str(step.arguments.get("repo", "")).rstrip("/")
        names = {repo, f"/repos/{repo}"} if repo != "." else {".", "/workspace", ""}
        return step.name == tool and step.ok and given in names

    return call


def commits(repo: str, message: str, shown: str, before: Before = "nothing") -> Wanted:
    """Commits with that message and no word more; the answer holds the hash or repeats the outcome `shown`."""
    named = _repository("git_commit", repo)

    def call(step: Step) -> bool:
        # The wish itself as the message holds the wanted one, and is wrong in a history.
        return named(step) and _bare(str(step.arguments.get("message", ""))) == _bare(message)

    return Wanted(call, in_answer(shown), before)


def nothing_to_commit(repo: str) -> Wanted:
    """The commit is tried, fails, and the answer says why."""

    def call(step: Step) -> bool:
        return step.name in ("git_commit", "git_status") and repo in str(
            step.arguments.get("repo", "")
        )

    return Wanted(
        call, in_answer("nothing to commit", "clean", "no changes", "nothing has changed")
    )


def remembers(*keys: str) -> Wanted:
    """A note with all of `keys`; the answer says that it is kept."""
    kept = re.compile(r"remember|noted?\b|saved|stored|keep|kept|memor|written down", re.I)

    def call(step: Step) -> bool:
        note = str(step.arguments.get("note", ""))
        return step.name == "remember" and all(key.lower() in note.lower() for key in keys)

    return Wanted(call, lambda played: bool(kept.search(played.answer)))


def recalls(value: str, bare: bool = False) -> Wanted:
    """A search that brings back the note with `value`; the answer holds it."""

    def call(step: Step) -> bool:
        return step.name == "recall" and value.lower() in step.result.lower()

    return Wanted(call, in_answer(value), bare=bare)


def plans(
    when: str,
    *keys: str,
    kind: str = "remind",
    before: Before = "nothing",
) -> Wanted:
    """A job at the time that `when` means, with all of `keys` in its task, of that kind.

    The answer holds the time that the tool gave, or the person's words for it.
    """

    def call(step: Step) -> bool:
        given = step.arguments
        due = understand(str(given.get("when", "")), step.machine.now)
        named = all(key.lower() in str(given.get("task", "")).lower() for key in keys)
        return (
            step.name == "schedule"
            and due == understand(when, step.machine.now)
            and _is_kind(kind, given)
            and named
        )

    def held(played: Played) -> bool:
        due = understand(when, played.machine.now)
        given = [str(step.arguments.get("when", when)) for step in played.steps]
        clock = [f"{due.at:%H:%M}", f"{due.at:%I:%M}".lstrip("0")] if due else []
        return holds(played.answer, when, *given, *clock)

    return Wanted(call, held, before)


def _is_kind(kind: str, given: Mapping[str, Any]) -> bool:
    """As the product finds the kind out where it is not said; a task may be to summarise."""
    task, said = str(given.get("task", "")).lower(), given.get("kind")
    if kind == "summary" and said != "remind":
        return said == "summary" or "summar" in task
    return said == kind or (not said and task.startswith(kind))


def says(*forms: str) -> Wanted:
    """No tool, and an answer with one of `forms` (anything but the plain refusal, if none is given)."""

    def held(played: Played) -> bool:
        return bool(played.answer.strip()) and any(
            form.lower() in played.answer.lower() for form in forms or ("",)
        )

    return Wanted(None, held)


def chats() -> Wanted:
    """No tool, and an answer in words that declines nothing."""

    def held(played: Played) -> bool:
        return len(played.answer.strip()) > 1 and not NO_REPLY.search(played.answer)

    return Wanted(None, held)


def names_abilities() -> Wanted:
    """No tool, and at least two of the things that it can do."""
    abilities = (r"file", r"git|repositor", r"remember|note|memor", r"remind|schedul", r"command|shell|bash",
                 r"disk|machine|computer", r"search", r"sum|arithmetic|calculat")  # fmt: skip

    def held(played: Played) -> bool:
        return sum(bool(re.search(a, played.answer, re.I)) for a in abilities) >= 2

    return Wanted(None, held)


def refuses() -> Wanted:
    """What is beyond the model: no tool, and its plain sentence."""
    return Wanted(None, lambda played: bool(REFUSAL.search(played.answer)))
