"""Servers of tools that others wrote (Model Context Protocol), behind walls.

tools.py             what a server says of its tools; the owner's word on it; arguments from words; what comes back, as text and files
connection.py        a session with a server, by the SDK
oauth.py             an owner signs in to a server of another host, by the SDK
tls_termination.py   secrets that never enter a server's sandbox
install.py           a server's package, installed once
config.py            how a server is configured
servers.py           which servers run, one process for each chat
listed.py            tools of one server that every prompt lists
"""
