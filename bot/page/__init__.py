"""The owner's page: what runs, where the seconds and tokens go, and why the agent did what it did.

A small web server over one read-only connection to the state and the control socket. What an owner changes
here goes the way of the command line: its own short transaction, which the running bot finds.

server.py     the application, and the addresses it answers at
access.py     the key, sessions, who may ask
views.py      what is read, as JSON
mini_app.py   who opens it inside of Telegram
live.py       what is new, while somebody looks
changes.py    what an owner may press
processor.py  load and temperature of a machine without a card

The page itself, HTML, CSS and modules as they are, is in the folder static.
"""
