"""The tools: typed functions, one file per family.

shell.py    bash                      git.py      git_status, git_diff, git_commit
files.py    read, write, edit a file  memory.py   remember, recall
search.py   list_files, grep          later.py    schedule
courier.py  send_file                 inner.py    delegate
web.py      web_fetch                 (agent/tools/registry.py says which are offered)
"""
