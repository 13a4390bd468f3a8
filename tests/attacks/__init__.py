"""Attacks on the sandbox: what a command or a path in it may not reach.

python -m tests.attacks            against the sandbox: every one is to be blocked
python -m tests.attacks --plain    against a plain subprocess: shows that they work
python -m tests.attacks --unit     against the sandbox in the bot's unit, under a real systemd

python -m tests.attacks --walls    each wall taken down once: its attacks must get through
                --whole            also injections in every dress on every way in

stage.py     the host that is attacked: secrets, sockets, processes, another chat
subject.py   what is attacked: a sandbox, or a plain subprocess with naive file access
attack.py    one attack, and how its success is seen
cases/       the attacks, one file per area
suite.py     runs them
rooms.py     what the programs that read strangers' bytes reach once they are taken over
unit.py      runs them in the bot's unit, which a systemd of its own has started
walls.py     the walls, and how each is taken down
hardening.py whether what the unit asks for is in force there
"""
