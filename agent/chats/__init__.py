"""Which chat's turn runs when: one worker per chat.

chats.py        one worker per chat: messages in, turns, stop, retry, forget
assignment.py   what a worker hands to whoever runs the turn
maintenance.py  work in the background while no turn runs
"""
