"""Everything that may go wrong, at random, against the running whole; nothing may be lost or doubled.

people.py   who talks to it, waits, and counts what came
faults.py   what goes wrong, one function each
line.py     the network that can be cut;  clock.py  the time that can jump
whole.py    backend and bot, kept running as systemd keeps them
table.py    what it prints
"""
