"""What happened in a repository: facts by git, prose by the model, checked against the facts.
git_facts.py       git's facts about the range (collect.sh), and the facts as text
repo_summaries.py  a chat's summaries, each from where the last delivered one ends; the model's prose,
                   in stages, without what the facts do not support
"""
