"""Real models through the product: what they complete, how long people wait, and what else reaches a person.

weights.py   which files, fetched by their digest
wishes.toml  everyday wishes, in the form of agent/evaluate/tasks
trial.py     one task with one model to one line of a file, so that a run can be resumed
table.py     the figures over these lines, as Markdown
"""
