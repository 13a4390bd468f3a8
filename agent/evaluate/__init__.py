"""How many small real tasks a model finishes here, and at what cost.

task.py     a task as data (tasks/*.toml): what is asked, and how the outcome is checked
traces.py   what a turn left behind besides files: notes, plans, sent files
judge.py    the checks, run in the same sandbox
prompts.py  our prompt and a naive one, with more or less said before
energy.py   joules from samples of the cards' power
play.py     one task from a fresh workspace to a score
scores.py   scores in a file, so that a run is resumed; the rates in them
"""
