"""What happened in a repository: facts by git, prose by the model, checked against the facts.

commit_range.py    the range of commits, of the clone or the newest of its origin (fetch.sh); subjects
                   and difference as material
git_facts.py       git's facts of the range (collect.sh), and the facts as text
repo_summaries.py  a chat's summaries, each from where the last delivered one ends; the model's words,
                   in stages, without what the facts do not support
"""
