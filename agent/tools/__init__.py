"""The tools: typed functions, one file per family.

tool.py      the decorator `tool`; Call and Output; the schema that the model sees
context.py   ToolContext: what a chat's tools work with, and its protocols
registry.py  which tools are offered; finds every tool in this folder

bash.py      bash                        git.py       git_status, git_diff, git_commit
files.py     read, write, edit a file    memory.py    remember, recall
search.py    list_files, grep            schedule.py  schedule
glob.py      globs as expressions        send_file.py send_file
web.py       web_fetch                   delegate.py  delegate

To add a tool, write one more file (docs/tools.md).
"""
