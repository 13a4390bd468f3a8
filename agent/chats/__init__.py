"""Which chat's turn runs when: one worker per chat.

chats.py        one worker per chat: messages in, turns, stop, retry, forget
maintenance.py  work in the background while no turn runs
"""
