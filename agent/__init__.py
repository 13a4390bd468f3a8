"""The turn and what it may do. Knows no messaging app.

chats/        one worker per chat: inbox to turn, turn to outbox
turn/         the loop: ask the model, run what it calls, repeat until it answers
toy/          what the program answers itself while the demo's toy model serves
context/      what a prompt holds, and what happens when it is full
llm/          how a model is reached: the wire form, calls that came as text, the GPU queue
memory/       notes, and recall of what was said
documents/    a person's own documents, in passages that are searched
tools/        what the model may call
sandbox/      where every tool process runs
shell/        commands in its shell that are answered outside of it
mcp/          servers of tools that others wrote, behind walls
web/          pages of the web as text
voice/        recordings to words, words to voice messages
schedule/     jobs and their times
summary/      what happened in a repository
evaluate/     how many tasks a model finishes
store/        durable state, the only SQL
messages.py   what is stored, and what a model is sent
events.py     what happens in a turn
model.py      what a model is to the agent
errors.py     errors by who must act
pictures.py   a stranger's picture to one that a model is shown
prompt.py     the fixed prefix, and the context block of a message
approvals.py  what an owner must allow
plan.py       the steps of a task
skills.py     what an owner has taught the agent by folders with a SKILL.md
budgets.py    what a chat may use up in a day
trust.py      whose text touches a chat, and what then asks
leaks.py      what must not leave: secrets in their forms, keys of known kinds
aio.py        waiting, cancelling and background work
bounded_json.py the JSON answer of a server that is not ours
files.py      files replaced in one step
nearest.py    names like one that is not there
language.py   the language of what a person reads; languages/ holds the catalogues
retelling.py  the same of what was said before it was known who reads it
timezones.py  stored instants and zones as a calendar has them
"""
