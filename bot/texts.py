"""The fixed texts, one table per language. A language is one more `Texts` in `TABLES`."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Texts:
    """English. Texts are Markdown; names in braces are filled in."""

    # the live reply
    reading: str = "reading {done:,} of {total:,} tokens"
    reading_eta: str = "reading {done:,} of {total:,} tokens, about {seconds} s"
    reading_estimate: str = "reading, about {seconds} s (an estimate)"
    interrupted: str = "interrupted by a restart"
    # delivery
    in_doubt: str = "I could not tell whether my last message reached you."
    show_again: str = "Show again"
    shown_again: str = "Sent again."
    not_in_doubt: str = "That message was already sent again."
    undeliverable: str = "A message could not be delivered: {why}."

    # who may talk
    hello: str = "Hello. Write to me, or see /help."
    stranger: str = "This is somebody's own assistant. Send /pair to ask its owner to let you in."
    asked_to_pair: str = "I have asked the owner."
    already_in: str = "You may talk to me already."
    bad_code: str = "This link has been used or has expired; ask for a new one."
    paired: Mapping[str, str] = field(
        default_factory=lambda: {
            "owner": "You are my owner now. Write to me, or see /help.",
            "member": "You may talk to me now. See /help.",
        }
    )
    wants_in: str = "{name} asks to talk to me."
    let_in: str = "Let in"
    refuse: str = "Refuse"
    was_let_in: str = "{name} was let in by {by} at {at}."
    was_refused: str = "{name} was refused by {by} at {at}."
    added_to_group: str = "I was added here. May everybody in this group talk to me?"
    only_owners: str = "Only an owner can do that."
    not_yours: str = "This is not for you."
    expired: str = "This has expired."
    slower: str = "That is more than I can follow; please write more slowly."
    too_large: str = (
        "{name} is larger than {limit} MB, the most that I can receive here, so I cannot read it."
        " Send it in parts, compressed, or as a link."
    )
    # messages from before the start
    backlog: str = "You sent {count} messages while I was off."
    answer_all: str = "Answer all"
    answer_last: str = "Only the last"
    answer_none: str = "None"
    backlog_decided: str = "Answering {answered}, leaving {dropped}."
    # approvals
    approval: str = "**May I do this?**"
    approval_from: str = " (asked in {chat})"
    approval_cut: str = "... and {more:,} characters more"
    approve_once: str = "Allow once"
    approve_chat: str = "Always in this chat"
    deny: str = "Deny"
    decided: Mapping[str, str] = field(
        default_factory=lambda: {"once": "Allowed.", "chat": "Allowed.", "denied": "Denied."}
    )
    decisions: Mapping[str, str] = field(
        default_factory=lambda: {
            "once": "✓ Allowed once by {by} at {at}.",
            "chat": "✓ Allowed for this chat by {by} at {at}.",
            "denied": "✗ Denied by {by} at {at}.",
            "expired": "✗ Nobody answered; expired at {at}.",
        }
    )
    grants: str = "Allowed in this chat without asking:\n\n{grants}"
    no_grants: str = "Nothing is open, and nothing is allowed without asking."
    # commands: what each does, then what they say
    commands: Mapping[str, str] = field(
        default_factory=lambda: {
            "start": "begin",
            "help": "what I can do",
            "new": "a new conversation",
            "resume": "go on with an older conversation",
            "stop": "stop what I am doing",
            "retry": "answer the last message again",
            "status": "how I am",
            "gpu": "a picture of the graphics card",
            "model": "which model, and switch it",
            "context": "what fills the context",
            "memory": "what I remember, and correct it",
            "forget": "forget a note, or all of this chat",
            "jobs": "what is planned",
            "schedule": "plan a reminder or a task",
            "repos": "the repositories I can see",
            "summary": "what happened in a repository",
            "approve": "open questions and standing permissions",
            "export": "this chat as files, to read and as JSON",
            "settings": "thinking and other settings",
            "timezone": "your time zone, for times and jobs",
        }
    )
    help: str = (
        "Write to me as to a person; I can use files, commands and repositories.\n\n{commands}"
    )
    new: str = "A new conversation. What I have noted, I still know; /resume goes back."
    go_on: str = "Go on"
    goes_on: str = "I go on."
    nothing_runs: str = "Nothing is running."
    nothing_to_retry: str = "There is nothing to answer again."
    not_here: str = "That is not set up here."
    resume: str = "Which conversation?"
    resumed: str = "We go on with: {title}"
    no_conversations: str = "There is no older conversation."
    nothing_said: str = "Nothing has been said yet."
    notes: str = "My notes:\n\n{notes}\n\n/memory NUMBER WORDS corrects one; pinned ones (📌) always stay in mind."
    no_notes: str = "I have no notes in this chat."
    no_such_note: str = "There is no such note."
    corrected: str = "Corrected."
    pinned: str = "Pinned."
    unpinned: str = "Unpinned."
    unpin: str = "Unpin"
    forgotten: str = "Forgotten."
    restored: str = "Restored."
    undo: str = "Undo"
    forget_all: str = "Delete this chat's conversations, notes and jobs for good?"
    forget_yes: str = "Delete all"
    no: str = "No"
    kept: str = "Nothing was deleted."
    all_forgotten: str = "All of this chat is deleted."
    schedule_how: str = "Say when and what: /schedule tomorrow at 9 call the bank"
    plan_question: str = "{told}\n\nShall I plan this?"
    plan_it: str = "Plan it"
    not_planned: str = "Nothing was planned."
    planned: str = "Job {number}: {told}"
    no_jobs: str = "Nothing is planned."
    run_now: str = "Now"
    job_done: Mapping[str, str] = field(
        default_factory=lambda: {
            "pause": "Paused.",
            "go": "Goes on.",
            "run": "It runs now.",
            "rm": "Deleted.",
        }
    )
    no_repos: str = "No repository is configured."
    # the card of /status, each line of parts that are known
    window: str = "window {tokens:,} tokens"
    restarts: str = "restarts {count}"
    prefill: str = "prefill {speed:,.0f} tok/s"
    decode: str = "decode {speed:.1f} tok/s"
    cache: str = "cache {hit:.0%}"
    gpu_memory: str = "{used:.1f} of {total:.1f} GiB"
    gpu_slowed: str = "slowed: {why}"
    running: str = "{count} running"
    waiting: str = "{count} waiting"
    to_send: str = "{count} to send"
    doubtful: str = "{count} in doubt"
    failed: str = "{count} failed"
    polling: str = "polling: {problem}"
    up: str = "up {span}, at {at}"
    days: str = "{days} days"
    hours: str = "{hours} h {minutes} min"
    minutes: str = "{minutes} min"
    context_head: str = "| part | tokens |"
    no_backend: str = "The model backend is not known here."
    no_gpu: str = "This machine has no graphics card that I can see."
    model: str = "The model is **{now}**."
    switching: str = "Switching to **{name}**."
    model_window: str = "A window of {tokens:,} tokens."
    model_speed: str = "Here it writes {speed:.0f} tokens/s."
    switched: str = "**{name}** is ready after {seconds:.0f} s."
    switched_warm: str = "Its {tokens:,} fixed tokens are warm."
    refresh: str = "Refresh"
    settings: str = "Thinking before an answer, in tokens: **{thinking}**"
    no_thinking: str = "The model server in use takes no such budget: this has no effect."
    off: str = "off"
    settings_timezone: str = "Time zone: **{zone}** (/timezone changes it)"
    timezone: str = "The time zone of this chat is **{zone}**; it is {at} there."
    timezone_how: str = "Send /timezone with a name such as Europe/Berlin to change it."
    timezone_unknown: str = "There is no time zone {zone}."
    timezone_near: str = "Did you mean {zones}?"
    timezone_jobs: str = "Jobs at a time of day follow:"


TABLES = {"en": Texts()}


def texts(language: str) -> Texts:
    """The table of a language tag like "fr" or "fr-CA", else English."""
    return TABLES.get(language.partition("-")[0].lower(), TABLES["en"])
