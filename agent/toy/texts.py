"""What a person is told while the toy model serves."""

ABILITIES = (
    "My tools: commands in a sandbox; reading, writing, editing, searching and sending files; git repositories;"
    " notes; reminders and jobs; /help lists the commands. Right now a toy model of 5 MB serves: it"
    ' understands short English wishes such as "how much disk space is free?" or "remind me in 2 minutes to'
    ' stretch". A real model (/model) understands your own words.'
)
SELF = (
    "I am Voltaire, a personal assistant on your own machine: a program with tools, memory and a schedule,"
    " and a language model that decides what to do. That model is now Pocket, a toy of 5 MB; /model tells how"
    " to get a real one."
)
REAL_MODEL = (
    "One step: `make demo MODEL=FILE.gguf` (or `voltaire run --model FILE.gguf`) with any GGUF file, on the card"
    " where there is one. `voltaire model fit` lists what fits this machine, best first, with the files that"
    " LM Studio, Ollama and others have left here; `voltaire setup` sets it up for good with your own bot."
    " /model shows the same here."
)
PICTURE = "The picture is saved as {path}. This toy model cannot see pictures; a real model with vision does (/model)."
VOICE = (
    "The recording is saved as {path}. This toy model hears nothing; with `voltaire model pull whisper-base`"
    " (after `make voice`) or a Whisper server (`agent.transcribe_url`), and a real model (/model), I understand"
    " speech."
)
SAYS = "{path} says:\n\n{text}"
FILE = "The file is saved as {path}. Say what to do with it, such as: read {path}"
PASTE = (
    "That is {count:,} characters, more than this toy model can take in, so I have done nothing with it and"
    " kept nothing of it. A real model (/model) reads it. As a file I could at least search it."
)
LANGUAGE = (
    "This toy model understands little but English. A real model (/model) speaks your language, too. What I understand"
    ' all the same: "how much disk space is free?", "write a file shopping.txt with milk, eggs and bread", "remind me in 2'
    ' minutes to stretch".'
)
WRITTEN = "I have written {path}."
NOTED = "Noted: {note}"
BEYOND = (
    "I am only a toy model of 5 MB, and that is beyond me. One step to a real one: `make demo MODEL=FILE.gguf`, with any"
    " GGUF file; /model shows which fit this machine."
)
HELLO = "Hello! What can I do for you?"
NO_FILES = "There are no files here yet."
PLANNED = "⏰ {when}: {task}. /jobs shows and cancels it."
FINE = "I am fine, thank you. What can I do for you?"
WELCOME = "You are welcome!"
GOODBYE = "Goodbye!"
REPOSITORIES = (
    "An owner names its folder in the configuration: a section [agent.repos.NAME] with path and write. /repos lists what"
    " I may see. A repository in this chat's workspace needs nothing."
)
COMMANDS = (
    "/stop ends what runs, /new begins a new conversation, /memory shows what is remembered and /forget deletes"
    " it, /jobs shows reminders and cancels them, /settings has language and time zone, /model the models;"
    " /help lists all."
)
PRIVACY = (
    "Model, notes and files stay on this machine. Your messages go through the messaging app; in the demo that"
    " runs here, too, and nothing leaves this machine. Only owners and those whom they let in can talk to me,"
    " and whoever owns the machine can read along."
)
REACH = (
    "My tools run in a sandbox of the Linux kernel: they see one folder, this chat's workspace; they cannot see"
    " the rest of your files or what else runs here, and have no network unless the owner allows it. A file that you send here, with the paper"
    " clip, lands in that folder."
)
SENSES = (
    "This toy model reads short English sentences: no pictures, no speech, no other languages, and what you send"
    " is only kept as a file. With a real model (/model), one that sees, and `voltaire model pull"
    " whisper-base` (after `make voice`) I can do all three."
)
SETUP = (
    "`voltaire setup` connects me: it asks for a bot's token, shows a link that makes you the owner, and proposes"
    " a model for this machine. It is free software and needs no GPU, though a real model wants one."
)
TOLD = "You told me: {note}"
NO_NOTES = "I do not know: you have not told me. Say it like: remember that my name is Ada."
NO_REPOSITORY = (
    "There is no git repository in the workspace, and none is configured (/repos lists them)."
)
DENIED = "I have left that undone, as you wished."
UNSURE = (
    "I did not understand that well enough to do it, so I stopped there. Try fewer and plainer words, one thing"
    ' at a time, such as "how much disk space is free?". A real model (/model) understands your own words.'
)
