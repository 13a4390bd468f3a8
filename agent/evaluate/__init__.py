"""How many small real tasks a model finishes here, and at what cost.

tasks.py    a task as data (tasks/*.toml), the checks of what a turn left behind, run in the same sandbox
prompts.py  what is compared: our prompt, a naive one, ours with one thing changed, more or less conversation before
listed.py   commands of the shell as tools of their own, for one of them
stage.py    sandboxes, documents, skills and a made-up web in which nothing of the owner's is seen
runner.py   one task from a fresh workspace to a score, its energy measured
scores.py   scores in a file, so that a run is resumed; the rates in them
"""
