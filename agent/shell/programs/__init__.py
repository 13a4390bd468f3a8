"""One file for each program; agent/shell/__init__.py says how one is written.

docs.py  documents: list, search, show, add, forget
mcp.py   the tools of MCP servers
plan.py  the steps of a task
web.py   search the web, read its pages
"""
