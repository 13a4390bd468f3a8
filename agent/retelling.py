"""Translates English sentences that were made before it was known who reads them.

The backend knows no languages: its reasons, alerts and refusals are English sentences. So are the stored
descriptions of a text's source and of what was withheld. The tables below list their forms, with fields
where something is filled in. A text that has one of these forms is translated:

    with speaking("de"):
        retold("GPU 1 answers again.")  -> "GPU 1 antwortet wieder."

Any other text, such as a line of a server's log, is left as it is.
"""

import re
from functools import cache

from agent.language import ENGLISH, FIELD, local_number, spoken, translated
from agent.schedule.times.rule import SHORT_WEEKDAYS

REASONS = (  # of the backend, and of the bot for its owners
    # the way to the backend, and to its server
    "No model backend is running.",
    "The model backend does not answer.",
    "The model backend ended while waiting for it.",
    "The model backend ended while waiting for the GPU.",
    "The model server was not ready in time.",
    "The model server has failed.",
    "{name} could not be started.",
    "The model server cannot be reached.",
    "The model server gave no sign of life.",
    "The model server is busy.",
    # GPUs
    "The GPU is slowing itself down because of heat.",
    "The GPU runs at full speed again.",
    "The model writes {share} slower than it usually does.",
    "The model writes at its usual speed again.",
    "The GPU's temperature can no longer be read; work goes on.",
    "The GPU is at {now} °C; new work waits until it has cooled to {limit} °C.",
    "The GPU is at {now} °C; at {limit} °C work is held.",
    "The GPU has cooled to {now} °C; work goes on.",
    "The GPU has cooled to {now} °C.",
    "GPU {index} no longer answers (fallen off the bus); a reboot may be needed.",
    "GPU {index} answers again.",
    "GPU {index} has {count} uncorrected memory errors since the driver was loaded.",
    "GPU {index} reported Xid {number} ({meaning}).",
    "GPU {index} reported Xid {number}.",
    "a program's error",
    "a memory page fault",
    "the program stopped",
    "cleaned up after a program's end",
    "double-bit memory error",
    "internal microcontroller halt",
    "a memory page is retired",
    "memory page retirement failed",
    "NVLink error",
    "the card has fallen off the bus",
    "many single-bit memory errors",
    "contained memory error",
    "uncontained memory error",
    "power cap",
    "hardware slowdown",
    "thermal",
    "power brake",
    "board limit",
    "reliability",
    "The machine went down without a shutdown, last seen {at} under load{measured}.",
    "The machine went down without a shutdown, last seen {at} idle{measured}.",
    "The machine went down without a shutdown, last seen {at} under load.",
    "The machine went down without a shutdown, last seen {at} idle.",
    "Busy and hot points to the cooling.",
    "Busy and cool points to the power supply.",
    # starting a model server
    "The backend was started.",
    "A restart was asked for.",
    "Back to the full profile.",
    "The model is switched to {name}.",
    "The model is being switched to {name}; messages wait.",
    "The model is being loaded again.",
    "The model server is {state}.",
    "The model server returns to its full settings.",
    "The model server cannot be started: {why}",
    "{name} could not be started: {why}",
    "The model server cannot be run: {why}.",
    "The model server {path} cannot be run: {why}.",
    "The model server {path} is missing or not executable.",
    "The model server does not even answer --help.",
    "The model server lacks the flag {flag}.",
    "The model server lacks {flags}; left out.",
    "The model file is missing: {path}.",
    "Get it: voltaire model pull {name}.",
    "The model server came up on the processor, not on the GPU.",
    "The model runs on the processor instead of the GPU, many times slower.",
    "The model server does not answer /props: {why}.",
    "The prefix could not be warmed: {why}",
    "No search by meaning: {why}",
    "The embedding server cannot be run: {why}.",
    "The embedding server no longer answered.",
    "There are no vectors now: {why}",
    "it is starting",
    # why it ended
    "The model server ended.",
    "The model server ended with code {code} without saying why.",
    "The model server ended with code {code}: {said}",
    "The model server ended without saying why.",
    "The model server ended: {said}",
    "The model server cannot start: the shared library {name} is missing.",
    "The NVIDIA driver is too old for this model server's CUDA.",
    "The NVIDIA driver (or CUDA) no longer supports this card; it needs an older one (V100: R580 or before).",
    "The model server was not built for this card, or the driver is too old for it "
    "(a V100 needs a build for compute 7.0 and driver R570 to R580).",
    "The GPU stopped answering.",
    "The GPU ran out of memory.",
    "The machine ran out of memory for the model.",
    "The machine ran out of memory and ended the model server.",
    "The port of the model server is in use.",
    "The model server does not know the flag {flag}.",
    "The model server refuses a flag: {flag}.",
    "The model file is missing.",
    "The model file is damaged or of a kind that this server does not know.",
    "The model server uses an instruction that this processor lacks; it needs a build for this machine.",
    "The model server was killed by someone.",
    "The model server was told to end by someone else.",
    "The model server was stopped (SIGSTOP) by someone.",
    "The model server crashed (segmentation fault).",
    "The model server crashed (bus error: is the model file being changed?).",
    "The model server crashed (signal {number}).",
    "The model server aborted.",
    "The model server dropped a request and did not come back.",
    "The model server answered {count} requests in a row with an error.",
    "The model server hung: no token and no progress for {seconds} s.",
    "The model did not finish loading ({seconds} s).",
    # less memory
    "The GPU ran out of memory; continuing with {less}.",
    "prefill in batches of {count}",
    "a window of {count} tokens",
    "the experts of {count} layers in RAM",
    "no draft model",
    "a KV cache of 8 bits",
    "There is no room for its projector, so it cannot see pictures.",
    "Pictures are read by the processor: the card has no room for the projector.",
    "The card has {free} GiB free: a window of {count} tokens in place of {full}.",
    "The machine has {free} GiB free: a window of {count} tokens in place of {full}.",
    "The draft model has another vocabulary ({sizes}), so it runs without drafting.",
    "{draft} tokens, and the model's {own}",
    "other tokens among its {count}",
    "{name} cannot run: {why}",
    "{name} is made for two cards, and there is one.",
    "{name} is made for two cards, and none was found.",
    "{name} with a window of {window} tokens needs {missing} MiB more on the card ({parts}); no window fits.",
    "{name} with a window of {window} tokens needs {missing} MiB more on the {count} cards ({parts}); no window fits.",
    "{name} with a window of {window} tokens needs {missing} MiB more in memory ({parts}); no window fits.",
    "--split-mode row crashes at load on Volta; use layer, or tensor for a dense model.",
    "ik_llama.cpp keeps sliding-window layers in full, which costs many times the memory for {kind};"
    " run it on upstream llama.cpp.",
    "The window of {limit} tokens is too small: the system text and the tools take {prefix}, and at least"
    " {least} are needed.",
    "Choose a larger context, or fewer tools ([agent] tools).",
    "No backup was made: {why}",
    "Another copy of this bot asks for updates with the same token; stop one of them.",
    "Telegram no longer accepts the bot token; see @BotFather.",
    "Telegram cannot be reached ({why}).",
    "{app}: no answer for {seconds} s.",
    "Matrix: the homeserver has ended the bot's session.",
    # servers of others
    "No model server can be reached.",
    "No model server can be reached at {where}.",
    "any address (none is configured)",
    "The model server at {where} refuses the key: check backend.api_key.",
    "The model server is not ours; {name} cannot be started on it.",
    "{first} does not answer; {other} is used.",
    "{first} do not answer; {other} is used.",
    "it gave no answer",
    "its answer is not JSON",
    # profiles and their files
    "There is no profile called {name}; there are {known}.",
    "There is no embedding model called {name}; there are {known}.",
    "Profile {path} cannot be read: {why}.",
    "Profile {path}: {where}: {why}.",
    "{name} is not a GGUF model.",
    "{name} is damaged: its header breaks off or makes no sense.",
    "The model file is cut off: its last weights are missing.",
    "{path} is missing, and its profile names no repository to pull it from.",
    "{name} arrived damaged (checksum); it was removed.",
    "Pull it again.",
    "{name} has {size} GiB, and {folder} has {free} GiB free; make room, or move the state (state.dir).",
    "{name} is gated: accept its terms on its page at the hub, then set HF_TOKEN to a token of your account.",
    "The hub has no repository {name}, or it is private: set HF_TOKEN to a token that may read it.",
    "{repository} has no file {name}.",
    "The hub could not be reached or broke off ({why}); try again: a download continues where it stopped.",
    # what fits this machine
    "{name}: a window of {window} tokens, {speed}, because {why}.",
    "{speed} tokens/s reported ({source})",
    "no speed reported",
    "it takes {part} of {all} GiB on the card",
    "it takes {part} of {all} GiB on the card and {ram} of RAM",
    "it takes {part} of {all} GiB of {count} cards",
    "it takes {part} of {all} GiB of {count} cards and {ram} of RAM",
    "it needs no card, and {size} of memory",
    "its profile expects {part} of {all} GiB on the card ({why})",
    "its profile expects {part} of {all} GiB on the card ({why}) and {ram} of RAM",
    "its profile expects {part} of {all} GiB of {count} cards ({why})",
    "its profile expects {part} of {all} GiB of {count} cards ({why}) and {ram} of RAM",
    "its header could not be read",
    "it is not here yet",
    "not here yet",
    "no figure",
)  # fmt: skip
SOURCES = (  # agent.trust
    "page {address}",
    "search for {words}",
    "MCP server {name}",
    "document {name}",
    "names of documents",
    "folder {path}",
    "files of which nothing is known",
)
REQUESTS = (  # agent.sandbox.hosts
    "Connect to {place}.",
    "The traffic is encrypted or not HTTP, so it cannot be inspected.",
)
WITHHELD = (  # agent.leaks
    "{where}, which contained {what}",
    "an answer",
    "A request",
    "What is sent to {place}",
    "The commit",
    "A file's name",
    "The file {name}",
    "the secret {name}",
    "what looks like {kind}",
    "a private key",
    "a key of {service}",
    "a token of {service}",
    "a token of a Telegram bot",
    "an API key",
    "a signed token (JWT)",
)
LONGEST = 2000  # characters: fields may hold anybody's text, and every form is matched against it
FACTS = (  # lines of agent.sandbox.host_report
    "name: {name}",
    "time: {weekday} {at}",
    *SHORT_WEEKDAYS,
    "uptime: {span}",
    "{count} days",
    "{count} day",
    "{count} hours",
    "{count} hour",
    "{count} minutes",
    "{count} minute",
    "load: {load} on {count} cores",
    "memory: {total} total, {used} used, {free} available",
    "disk /: {total} total, {used} used, {free} free ({percent}%)",
    "disk of /workspace: {total} total, {used} used, {free} free ({percent}%)",
    "{size} GiB",
    "gpu: none",
    "gpu: not known",
    "gpu {index}: {facts}",
    "{degrees} °C memory",
    "{watts} W of {limit} W",
    "{share} % busy",
    "{used} of {total} MiB used",
    "throttled: {why}",
    "model: {name}",
    "model: not known",
    "speed: {speed} tokens/s",
    "speed: {speed} tokens/s, reading {prefill} tokens/s",
)
LISTS = ("span", "facts")  # fields that hold several things, with commas between them
BETWEEN_SENTENCES = re.compile(r"(?<=[.?]) (?=[A-Z])")


def retold(text: str, forms: tuple[str, ...] = REASONS) -> str:
    """The text in the current language, where it has one of the forms or is several such sentences. What
    fills a field is translated likewise."""
    if spoken() == ENGLISH or not text or len(text) > LONGEST:
        return text
    sentences = BETWEEN_SENTENCES.split(text)
    if len(sentences) > 1 and (told := " ".join(retold(one, forms) for one in sentences)) != text:
        return told
    for form, pattern in patterns(forms):
        if found := pattern.fullmatch(text):
            parts = {
                name: ", ".join(retold(each, forms) for each in part.split(", "))
                if name in LISTS
                else retold(part, forms)
                for name, part in found.groupdict().items()
            }
            return translated(form).format(**parts)
    return local_number(text)


@cache
def patterns(forms: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each form with the pattern that matches it, the most specific first: those that begin with a fixed
    word and have the most fixed text."""
    fixed = sorted(forms, key=lambda form: (form.startswith("{"), -len(FIELD.sub("", form))))
    return tuple((form, pattern_of(form)) for form in fixed)


def pattern_of(form: str) -> re.Pattern[str]:
    """The pattern of a form; its fields match any text."""
    escaped = re.escape(form).replace(r"\{", "{").replace(r"\}", "}")
    return re.compile(FIELD.sub(lambda name: f"(?P<{name[0][1:-1]}>.+?)", escaped), re.DOTALL)
