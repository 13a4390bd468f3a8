"""The tools: typed functions, one file per family.

tool.py       the decorator `tool`; Call and Output; the schema that the model sees
context.py    ToolContext: what a chat's tools work with, and its protocols
registry.py   finds every tool in this folder; which of them are offered

bash.py       bash
files.py      read_file, write_file, edit_file
search.py     list_files, grep
git.py        git_status, git_diff, git_commit
memory.py     remember, recall
schedule.py   schedule
delegate.py   delegate
send_file.py  send_file
web.py        web_fetch

To add a tool, write one more file: docs/tools.md.
"""
