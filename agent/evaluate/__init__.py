"""How many small real tasks a model finishes here, and at what cost.

tasks.py   a task as data (tasks/*.toml); our prompt and a naive one, with more or less conversation
           before; the checks of what a turn left behind, run in the same sandbox
runner.py  one task from a fresh workspace to a score, its energy measured
scores.py  scores in a file, so that a run is resumed; the rates in them
"""
