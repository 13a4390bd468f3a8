"""The fixed texts of the chat, in English; `TEXTS` gives them in the language spoken (agent.language)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agent.language import plural, translated


class Plural(NamedTuple):
    """A text with {count}: the form for one, and the form for several."""

    one: str
    many: str

    def format(self, *, count: int) -> str:
        return plural(self.one, self.many, count).format(count=count)


class Texts(NamedTuple):
    """Markdown, with fields in braces. Of a Mapping the values are translated, the keys are not."""

    # the live reply
    reading: str = "reading {done:,} of {total:,} tokens"
    reading_eta: str = "reading {done:,} of {total:,} tokens, about {seconds} s"
    reading_estimate: str = "reading, about {seconds} s (an estimate)"
    reading_late: str = "reading {done:,} of {total:,} tokens, {seconds} s so far"
    reading_since: str = "reading for {seconds} s"
    running_since: str = "running {tool} for {seconds} s"
    approval_pending: str = "waiting for a yes from {who}, {seconds} s"
    you: str = "you"
    an_owner: str = "an owner"
    or_: str = " or "
    in_line: str = "number {place} in line for the model, {seconds} s"
    working_since: str = "working for {seconds} s"
    notice_since: str = "{notice} ({seconds} s)"
    interrupted: str = "interrupted by a restart"
    # delivery
    in_doubt: str = "I could not tell whether my last message reached you."
    show_again: str = "Show again"
    shown_again: str = "Sent again."
    not_in_doubt: str = "That message was already sent again."
    not_kept: str = (
        "⚠️ {why} What you sent waits and is not lost; I will continue with it by myself."
    )
    undeliverable: str = "A message could not be delivered: {why}."
    # what is set aside, by the table that it comes from
    set_aside_here: str = "⚠️ {what} of this chat could not be handled and was set aside; everything after it continues."
    set_aside_anywhere: str = (
        "⚠️ {what} could not be handled and were set aside; everything after them continues."
        " They are kept in the database."
    )
    set_aside_kinds: Mapping[str, Plural] = {
        "updates": Plural("{count} incoming update", "{count} incoming updates"),
        "inbox": Plural("{count} message", "{count} messages"),
        "turns": Plural("{count} answer", "{count} answers"),
    }
    ledger_head: str = "The ledger has {rows:,} rows; its head:\n`{head}`"
    ledger_broken: str = "⚠️ The ledger was tampered with, or is damaged: {problem}"

    # who may talk
    hello: str = "Hello. Write to me, or see /help."
    # the first screen; the descriptions stand in an empty chat and in the bot's profile
    description: str = (
        "A personal assistant with tools, on its owner's own machine: it runs commands and edits files in a"
        " sandbox, looks into repositories, keeps notes, reminds you and plans jobs.\n\nWhat you write comes"
        " through Telegram and is kept on that machine, where its owner can read it."
    )
    description_demo: str = (
        "The demo of a personal assistant with tools: it runs commands and edits files in a sandbox, keeps"
        " notes, reminds you and plans jobs.\n\nThis chat, the assistant and its model all run on this"
        " machine: nothing leaves it, and all of it is gone when the demo ends.\n\nWith another model (of"
        " voltaire model list, or a GGUF file): make demo MODEL=NAME"
    )
    short_description: str = "A personal assistant with tools, on its owner's own machine."
    what_i_am: str = (
        "I am **Voltaire**, a personal assistant with tools: I run commands and edit files in a sandbox,"
        " look into repositories, keep notes, remind you and plan jobs."
    )
    runs_at: Mapping[str, str] = {  # by the app
        "telegram": "I run on {host}. What you write gets there through Telegram and is kept there: its owner"
        " can read it, and so could Telegram.",
        "matrix": "I run on {host}. What you write gets there through Matrix and is kept there: its owner can"
        " read it, and so can the homeserver where a room is not encrypted.",
        "other": "I run on {host}. What you write is kept there, and its owner can read it.",
    }
    runs_here: str = (
        "This is the **demo**: chat, assistant and model run on this machine, **nothing leaves it**, and all"
        " of it is gone when the demo ends."
    )
    owners_machine: str = "my owner's machine"
    model_serves: str = "The model is **{name}**{where}."
    model_at: str = ", at {host}"
    toy_serves: str = (
        "The model is **Pocket**, a toy of 5 MB: quick, and not bright. It reads short English sentences. It"
        " shows what the program does, not what a real model can. /model tells how to get a real one, and which"
        " fit this machine."
    )
    toy_serves_demo: str = (
        "The model is **Pocket**, a toy of 5 MB: quick, and not bright. It reads short English sentences. It"
        " shows what the program does, not what a real model can. One step to a real one: `make demo"
        " MODEL=qwen2.5-coder-1.5b` downloads it (1.0 GiB), MODEL=FILE takes any GGUF; /model shows which fit"
        " this machine."
    )
    no_model_yet: str = "No model answers yet; /status tells why."
    try_these: str = (
        "Write to me as you would to a person, or try one of these (/help lists the commands):"
    )
    wishes: Sequence[str] = (
        "how much disk space is free?",
        "how long has this machine been running?",
        "write a file shopping.txt with milk, eggs and bread",
        "remember that I like short answers",
        "remind me in 2 minutes to stretch",
        "what is 17 * 23?",
    )
    stranger: str = "This is a private assistant. Send /pair to ask its owner for access."
    asked_to_pair: str = "I have asked the owner."
    already_in: str = "You already have access."
    bad_code: str = "This link has been used or has expired; ask for a new one."
    paired: Mapping[str, str] = {
        "owner": "You are now my owner. Write to me, or see /help.",
        "member": "You have access now. Write to me, or see /help.",
    }
    wants_in: str = "{name} asks for access."
    let_in: str = "Let in"
    refuse: str = "Refuse"
    was_let_in: str = "{name} was let in by {by} at {at}."
    was_refused: str = "{name} was refused by {by} at {at}."
    added_to_group: str = "I was added to this group. May everybody here talk to me?"
    no_business: str = (
        "I do not read or answer the messages of a business account: please take me out of it."
    )
    no_guest: str = "I do not answer as a guest in other chats: please write to me in our own."
    only_owners: str = "Only an owner can do that."
    not_yours: str = "This is not for you."
    expired: str = "This has expired."
    slower: str = "You are sending messages faster than I can answer; please slow down."
    too_large: str = (
        "{name} is larger than {limit} MB, the most that I can receive here, so I cannot read it."
        " Send it in parts, compressed, or as a link."
    )
    # of an app without buttons, or with encryption
    buttons_how: str = "React with the number, or reply with it."
    wants_in_room: str = "{name} invites me to a room."
    undecryptable: str = (
        "I cannot read your last message: {why}. I have asked your app for its key and answer once it"
        " comes; else please send it again."
    )
    put_out: str = (
        "{by} has removed me from the room {room}: my messages there wait until I am invited again."
    )
    upgraded: str = "The room {room} was upgraded: I will continue our chat in the new one."
    in_plain: str = "Your message arrived unencrypted in an encrypted room, so I did not read it."
    # messages from before the start
    backlog: Plural = Plural(
        "You sent {count} message while I was offline.",
        "You sent {count} messages while I was offline.",
    )
    answer_all: str = "Answer all"
    answer_last: str = "Only the last"
    answer_none: str = "None"
    backlog_decided: str = "Answering {answered}, skipping {dropped}."
    whole_in_file: str = "The whole answer, {count:,} characters, is in {name} below."
    # approvals
    approval: str = "**May I do this?**"
    approval_from: str = " (asked in {chat})"
    terminal: str = "the terminal, chat {chat}"
    approval_cut: str = "[... {more:,} characters in {lines:,} lines are in the file above ...]"
    approval_whole: str = "All {count:,} characters of the next question"
    approval_touched: str = (
        "This chat holds text that strangers may have written: {because}. /trust tells more."
    )
    approval_covers: str = "“{once}”: this step alone. “{always}”: {scope}, in this chat, until you take it back (/approve, or voltaire page)."
    approve_once: str = "Allow once"
    approve_chat: str = "Always in this chat"
    deny: str = "Deny"
    decided: Mapping[str, str] = {"once": "Allowed.", "chat": "Allowed.", "denied": "Denied."}
    decisions: Mapping[str, str] = {
        "once": "✓ Allowed once by {by} at {at}.",
        "chat": "✓ Allowed for this chat by {by} at {at}.",
        "denied": "✗ Denied by {by} at {at}.",
        "expired": "✗ Nobody answered; expired at {at}.",
        "stopped": "✗ Stopped at {at}, before anybody answered.",
    }
    grants: str = "Allowed in this chat without asking:\n\n{grants}"
    no_grants: str = "There are no open questions, and nothing is allowed without asking."
    # commands: what each does, then what they say
    commands: Mapping[str, str] = {
        "start": "begin",
        "help": "what I can do",
        "new": "start a new conversation",
        "resume": "return to an older conversation",
        "stop": "stop what I am doing",
        "retry": "answer the last message again",
        "undo": "take back what a turn changed",
        "changes": "what the last turns changed, with differences",
        "plan": "the plan of the current task, to correct",
        "status": "model, queues and problems",
        "gpu": "the last hours of the GPU as a picture, or lend it: /gpu lend 2h",
        "model": "show or switch the model",
        "context": "what fills the context",
        "memory": "show, correct and pin my notes",
        "forget": "delete a note, or all of this chat",
        "jobs": "scheduled jobs",
        "schedule": "schedule a reminder or a task",
        "tonight": "do your last message again at night, several times, and tell you the best in the morning",
        "repos": "the repositories I can see",
        "skills": "what I have been taught",
        "mcp": "tool servers, and which tools are allowed",
        "summary": "what happened in a repository",
        "link": "your chats in two apps share notes and jobs",
        "trust": "strangers' text in this chat, and what counts as yours",
        "approve": "open questions and standing permissions",
        "freeze": "stop everything: no tool runs, no job starts",
        "thaw": "end the freeze, with a code",
        "export": "this chat as Markdown and JSON",
        "settings": "thinking, tool lines, voice and other settings",
        "timezone": "the time zone of this chat",
    }
    touched: Mapping[str, str] = {
        "chat": "**This chat** holds text that strangers may have written: {sources}.",
        "files": "**Its files** may, too: {sources}.",
        "note": "**Note {number}** was saved in such a chat ({source}): {text}",
        "job": "**Job {number}** was planned in such a chat ({source}): {text}",
    }
    touched_how: str = (
        "So I ask before I keep, plan or send anything. Only text that you wrote or have read in full is"
        " yours; /new begins a chat without it."
    )
    frozen_now: str = (
        "❄ Frozen: no tool runs and no job starts, also after a restart. Turns stopped: {turns}; standing"
        " permissions ended: {grants}. I still answer, without tools."
    )
    frozen_since: str = "❄ frozen since {at}"
    not_frozen: str = "Nothing is frozen."
    thaw_in_terminal: str = "Only `voltaire thaw` in the terminal ends it; `voltaire thaw --new-code` sets up codes for here."
    thaw_by_code: str = (
        "/thaw with the code of your authenticator app ends it, or `voltaire thaw` in the terminal."
    )
    thaw_outcomes: Mapping[str, str] = {
        "thawed": "Thawed. Standing permissions are not given back.",
        "wrong": "That code is wrong, or was used already.",
        "often": "Too many codes in an hour; `voltaire thaw` in the terminal still ends it.",
    }
    used_today: str = "used today: {used}"
    untouched: str = "Nothing that strangers may have written is in this chat."
    touched_status: str = "text of strangers here: {sources} (/trust)"
    vouch: Mapping[str, str] = {
        "chat": "All of this chat so far is mine",
        "files": "These files are mine",
        "note": "Note {number} is mine",
        "job": "Job {number} is mine",
    }
    kept_touched: str = "Leave it as it is"
    vouched: str = "Noted: it is yours."
    help: str = "Just write to me. I can work with files, commands and repositories.\n\n{commands}"
    help_groups: Mapping[str, Sequence[str]] = {
        "Conversations": ("start", "help", "new", "resume", "link"),
        "Answers": ("stop", "retry", "plan", "export", "settings"),
        "Files": ("changes", "undo", "repos"),
        "What I know": ("memory", "forget", "skills", "trust"),
        "Plans": ("jobs", "schedule", "tonight", "summary", "timezone"),
        "The machine": ("status", "gpu", "model", "context"),
        "Owners": ("approve", "mcp", "freeze", "thaw"),
    }
    new: str = "This is a new conversation. My notes are kept; /resume returns to an older one."
    go_on: str = "Go on"
    goes_on: str = "Continuing."
    nothing_runs: str = "Nothing is running."
    link_code: str = (
        "Write this to me in your other app, in a chat with me alone, within {minutes} minutes:\n\n"
        "`/link {code}`\n\nBoth chats then share their notes and jobs. What is said stays where it is,"
        " and a job speaks where it was made."
    )
    linked: str = (
        "Linked: this chat and your other one share notes and jobs, and alerts come once, where the code was"
        " asked for. /link alerts brings them here, /link end separates the chats."
    )
    alerts_here: str = "Alerts come to you here from now on."
    linked_now: str = "This chat is linked already; /link end separates it from the others."
    link_ended: str = "This chat is on its own again, with the notes and jobs that were made here."
    not_linked: str = "This chat is linked with no other."
    link_private: str = "Only chats with me alone can be linked."
    bad_link_code: str = (
        "That code is not valid (any more). /link in the other app gives a new one."
    )
    no_plan: str = "There is no plan here. I make one where work has many steps."
    plan_usage: str = "/plan add WORDS, /plan 2 WORDS, /plan done 2, /plan end"
    plan_corrected: str = "I have corrected the plan:\n{plan}"
    nothing_to_retry: str = "There is nothing to answer again."
    no_changes: str = "No turn has changed files here, or it is no longer known."
    files: Plural = Plural("{count} file", "{count} files")
    taken_back: str = "taken back"
    undone: str = "Turn {number} is taken back: {files}."
    undone_already: str = "Turn {number} was taken back already."
    undo_older: str = "/undo {number} takes back the one before."
    not_undone: str = "Nothing was taken back."
    undo_conflicts: str = "Nothing was taken back yet, because of this:\n\n{conflicts}"
    conflicts: Mapping[str, str] = {
        "changed": "{path} has changed since then",
        "lost": "{path} was too big to be kept, and would stay as it is",
    }
    undo_anyway: str = "Undo anyway"
    resume: str = "Which conversation?"
    resumed: str = "Resumed: {title}"
    no_conversations: str = "There is no older conversation."
    nothing_said: str = "Nothing has been said yet."
    notes: str = "My notes:\n\n{notes}\n\n/memory NUMBER WORDS corrects a note. Pinned notes (📌) come first in every prompt."
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
    all_forgotten: str = "Everything of this chat was deleted."
    schedule_how: str = "Say when and what: /schedule tomorrow at 9 call the bank"
    plan_question: str = "{told}\n\nShall I schedule this?"
    plan_it: str = "Schedule it"
    not_planned: str = "Nothing was scheduled."
    planned: str = "Job {number}: {told}"
    no_jobs: str = "Nothing is scheduled."
    run_now: str = "Now"
    job_done: Mapping[str, str] = {
        "pause": "Paused.",
        "go": "Resumed.",
        "run": "Running now.",
        "rm": "Deleted.",
    }
    repo_at: str = "- `{name}` at /repos/{name}"
    no_repos: str = "No repository is configured."
    no_servers: str = (
        "There is no MCP server. On my computer, voltaire mcp add NAME -- uvx PACKAGE adds one."
    )
    sign_in: str = (
        "The MCP server {name} wants you to sign in at {host}:\n\n{link}\n\nIf the page that follows cannot be opened, "
        "as on a phone, send me its address: /mcp {name} ADDRESS"
    )
    sign_in_moved: str = "Take care: the last time you signed in to {name} at {before}. Now it leads to another place, {host}."
    signed_in: str = "You are signed in to {name}."
    no_skills: str = "No skill has been added. On my computer, voltaire skills add PATH adds one."
    # the card of /status, each line of parts that are known
    window: str = "window {tokens:,} tokens"
    restarts: str = "restarts {count}"
    prefill: str = "prefill {speed:,.0f} tok/s"
    decode: str = "decode {speed:.1f} tok/s"
    cache: str = "cache {hit:.0%}"
    from_disk: str = "prompts from the disk: {chats}, {seconds:,.0f} s of reading saved"
    gpu_memory: str = "{used:.1f} of {total:.1f} GiB"
    gpu_slowed: str = "slowed: {why}"
    running: str = "{count} running"
    waiting: str = "{count} waiting"
    to_send: str = "{count} to send"
    doubtful: str = "{count} in doubt"
    failed: str = "{count} failed"
    set_aside: str = "{count} set aside"
    servers_running: str = "MCP servers: {count} running"
    polling: str = "polling: {problem}"
    up: str = "up {span}, at {at}"
    days: Plural = Plural("{count} day", "{count} days")
    hours: str = "{hours} h {minutes} min"
    minutes: str = "{minutes} min"
    context_head: str = "| part | tokens |"
    context_tool: str = "tool {name}"
    context_parts: Mapping[str, str] = {
        "system text": "system text",
        "instructions": "instructions",
        "notes": "notes",
        "summary": "summary",
        "transcript": "transcript",
        "free": "free",
        "beyond its useful context": "beyond its useful context",
    }
    context_window: str = "window"
    gpu_picture: Mapping[str, str] = {
        "Temperature, °C": "Temperature, °C",
        "Power, W": "Power, W",
        "Speed, tokens/s": "Speed, tokens/s",
        "core": "core",
        "memory": "memory",
        "power": "power",
        "written": "written",
    }
    no_gpu: str = "No GPU was found on this machine."
    no_gpu_speed: str = "No GPU was found on this machine: only the speed of its answers."
    lend: str = "Lend the card"
    lend_how: str = "For how long, a day at most? The model is unloaded; messages wait, reminders and watches go on. Or: `/gpu lend 90m`"
    lend_hours: str = "{hours} h"
    take_back: str = "Take it back"
    urgent_how: str = "While the card is lent, a small model answers these words: /urgent WORDS"
    model: str = "The model is **{now}**."
    switching: str = "Switching to **{name}**."
    model_window: str = "A window of {tokens:,} tokens."
    model_speed: str = "It writes {speed:.0f} tokens/s here."
    switched: str = "**{name}** is ready after {seconds:.0f} s."
    switched_warm: str = "Its fixed prefix of {tokens:,} tokens is warm."
    toy_hint: str = (
        "It is a toy. A real model is one step away, on my computer: `voltaire model fit` tells what fits it,"
        " `voltaire run --model FILE.gguf` serves any file."
    )
    toy_hint_demo: str = (
        "It is a toy. A real model is one step away: `make demo MODEL=qwen2.5-coder-1.5b` downloads one (1.0 GiB),"
        " MODEL=FILE takes any GGUF."
    )
    lie_here: str = "These are already on this machine, and fit:"
    would_fit: str = "These would fit, but are not here yet:"
    none_fits: str = (
        "None that I know fits this machine without a card; a small GGUF (1 to 4 B) does."
    )
    download: str = "Download {name}"
    downloading: str = "Downloading **{name}**: {done:.1f}{of} GiB"
    of_size: str = " of {size:.1f}"
    downloads_already: str = "That download is under way."
    downloaded: str = "**{name}** is here."
    not_downloaded: str = "**{name}** was not downloaded: {why} What has been downloaded is kept."
    use: str = "Use {name}"
    rehearse: str = "Try it on my last turns"
    rehearsing: str = (
        "Your last turns are done once more with **{name}**, while nobody needs the model; nothing is executed"
        " or sent."
    )
    rehearsed: str = (
        "**{name}** on your last {turns} turns: {same} of {recorded} calls are the same, {broken} broken;"
        " {looped} turns went in circles, {failed} failed."
    )
    first_word: str = "Its first word comes after {seconds:.1f} s."
    not_rehearsed: str = "**{name}** could not be tried: {why}"
    leave: str = "Leave it"
    left: str = "The model stays as it is."
    refresh: str = "Refresh"
    open_page: str = "Open the page"
    page_how: str = (
        "A page with more: `voltaire page`; here as a button once `page.url` is set (docs/page.md)."
    )
    settings: str = "Thinking before an answer, in tokens: **{thinking}**"
    settings_tools: str = "Lines about tools that stay in the chat: **{lines}**"
    tool_lines: Mapping[str, str] = {"all": "of all", "long": "of long ones", "none": "none"}
    settings_voice: str = "Answers as voice messages: **{voice}**"
    voice_settings: Mapping[str, str] = {
        "off": "never",
        "same": "to voice messages",
        "always": "always",
    }
    voice_missing: str = "⚠️ Nothing can speak on my computer yet: `{command}`"
    voice_rest: str = "The rest is in the text."
    voice_code: str = "Here are {lines} lines of code."
    voice_table: str = "Here is a table of {rows} rows."
    voice_formula: str = "Here is a formula."
    voice_link: str = "a link to {host}"
    listening: str = "listening: {done} of {total}"
    heard_partly: str = "⚠️ I heard it up to {at}. {why}"
    not_heard: str = "⚠️ I could not hear that. {why}"
    nothing_heard: str = "⚠️ I heard no speech in it."
    thinking_default: str = "model's default"
    thinking_unbounded: str = "no limit"
    thinking: str = "Thinking for {seconds} s, about {tokens:,} tokens so far"
    answer_now: str = "Answer now"
    answers_now: str = "It stops thinking and answers."
    no_thinking: str = "This model server has no such budget, so the setting has no effect."
    off: str = "off"
    settings_search: str = "Web search: **{engine}**"
    settings_timezone: str = "Time zone: **{zone}** (/timezone changes it)"
    settings_language: str = "Language: **{language}**"
    as_app: str = "as in your app"
    timezone: str = "The time zone of this chat is **{zone}**; it is {at} there."
    timezone_how: str = "Send /timezone with a name such as Europe/Berlin to change it."
    timezone_unknown: str = "There is no time zone {zone}."
    timezone_near: str = "Did you mean {zones}?"
    timezone_jobs: str = "Jobs at a time of day follow:"


class SpokenTexts(Texts):
    """Texts that are translated when they are read."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        match found:
            case str():
                return translated(found)
            case dict():
                return {k: translated(v) if isinstance(v, str) else v for k, v in found.items()}
            case tuple() if name == "wishes":
                return tuple(map(translated, found))
            case _:
                return found


TEXTS: Texts = SpokenTexts()
