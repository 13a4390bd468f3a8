"""What happened in a repository: facts by git, prose by the model, checked against the facts.

commit_range.py    the range of commits; subjects and difference as material
git_facts.py       git's facts of the range (collect.sh)
facts_text.py      the facts as text
prose.py           the model's words, in stages, without what the facts do not support
mirror.py          the newest commits of the origin, fetched beside the clone (fetch.sh)
repo_summaries.py  a chat's summaries, each from where the last delivered one ends
"""
