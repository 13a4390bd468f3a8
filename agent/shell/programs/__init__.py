"""One file for each program; agent/shell/__init__.py says how to write one.

calendar.py  the owner's calendars
docs.py      documents: list, search, show, add, forget
mail.py      the mail accounts of the owner's
mcp.py       the tools of MCP servers
plan.py      the steps of a task
web.py       search the web, read its pages
"""
