"""Real models through the product: what they complete, how long people wait, and what else reaches a person.

weights.py   which files, fetched by their digest
wishes.toml  everyday wishes, in the form of agent/evaluate/tasks
trial.py     one task with one model to one line of a file, so that a run can be resumed
peers.py     other agents on the same server, judged by the same checks; plain_loop.py is the least of them
long_talk.py forty messages in a small window, notes over three conversations, summaries of a repository
table.py     the figures over these lines, as Markdown
"""
