"""How many small real tasks a model finishes here, and at what cost.

tasks.py    a task as data (tasks/*.toml), the checks of what a turn left behind, run in the same sandbox
stage.py    sandboxes, documents, skills and a made-up web, without anything of the owner's
runner.py   one task from a fresh workspace to a score, with its energy
rehearsal.py  recorded turns done again by another model, with their results from the record
scores.py   scores in a file, so that a run can be resumed, and rates over them
"""
