"""Servers of tools that others wrote (Model Context Protocol), behind walls.

tools.py        what a server says of its tools; the owner's word on it; arguments from words
results.py      what comes back, as text and files
connection.py   a session with a server; the only file that knows the SDK
install.py      a server's package, installed once
servers.py      which are configured, which run
"""
