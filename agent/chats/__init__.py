"""Which chat's turn runs when: one worker per chat.

chats.py        all workers; messages in, stop, retry, forget
worker.py       one chat's worker: oldest messages, turns
assignment.py   what a worker hands to whoever runs the turn
maintenance.py  work in the background while no turn runs
"""
