"""How many small real tasks a model finishes here, and at what cost.

tasks.py    a task as data (tasks/*.toml): what is asked, and how the outcome is checked
prompts.py  our prompt and a naive one, with more or less conversation before
runner.py   one task from a fresh workspace to a score, its energy measured
outcome.py  what a turn left behind besides files; the checks, run in the same sandbox
scores.py   scores in a file, so that a run is resumed; the rates in them
"""
