"""The owner's page: what runs, where the seconds and tokens go, and why the agent did what it did.

A small web server over one read-only connection to the state, and the control socket. A change is made as
by the command line: by the process that holds the state.

server.py     the application, and the addresses it answers at
access.py     the key, sessions, who may ask
views.py      what the page reads, as JSON
changes.py    what an owner may change
completions.py  the agent behind OpenAI's form of an API, for other programs

The page itself (HTML, CSS, JavaScript modules, served as they are) is in the folder static.
"""
