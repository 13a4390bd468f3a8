"""The turn and what it may do. Knows no messaging app.

chats/        one worker per chat: inbox to turn, turn to outbox
turn/         the loop: ask the model, run what it calls, repeat until it answers
context/      what a prompt holds, and what happens when it is full
llm/          how a model is reached: the wire form, calls that came as text, the GPU queue
memory/       notes, and recall of what was said
documents/    a person's own documents, in passages that are searched
tools/        what the model may call
sandbox/      where every tool process runs
calendar/     the owner's calendars on CalDAV servers
shell/        commands in its shell that are answered outside of it
mcp/          servers of tools that others wrote, behind walls
web/          pages of the web as text
mail/         mail accounts of the owner's
voice/        recordings to words, words to voice messages
schedule/     jobs and their times
summary/      what happened in a repository
evaluate/     how many tasks a model finishes
store/        durable state, the only SQL
agent.py      the agent: its configuration, what it is made of, how it runs a turn
channels.py   what messaging apps and terminals do for it, and who is shown its turns
messages.py   what is stored, and what a model is sent
events.py     what happens in a turn
model.py      what a model is to the agent
errors.py     errors by who must act
pictures.py   prepares a stranger's picture for a model
prompt.py     the fixed prefix, and the context block of a message
approvals.py  tool calls that an owner must allow
plan.py       the steps of a task
skills.py     what an owner teaches the agent: folders with a SKILL.md
budgets.py    what a chat may use in a day
trust.py      whose text a chat holds, and which acts therefore ask
leaks.py      finds secrets and keys in what is about to be sent
other_agents.py what OpenClaw, Hermes agent and nanobot keep, as notes, jobs and skills
aio.py        waiting, cancelling and background work
bounded_json.py the JSON answer of an untrusted server
files.py      files that are replaced atomically
nearest.py    suggestions for a name that does not exist
language.py   the language of what a person reads; languages/ holds the catalogues
timezones.py  stored instants and zones as calendar times
"""
