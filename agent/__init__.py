"""The turn and what it may do. Knows no messaging app.

chats.py     one worker per chat: inbox to turn, turn to outbox; lease.py: one process at a time
loop.py      run_turn: ask, act, repeat; turn.py is what a turn is given
             asking.py, acting.py, course.py (its transcript), objections.py,
             claims.py, repetition.py, circling.py, limits.py, texts.py (the fixed sentences)
prompt.py    the fixed prefix and the tail; window.py: what leaves when it is full
model.py     what a model is to us; openai/ speaks the wire form
salvage/     calls that came as text, kept from view; step.py is one completion as read
approvals.py what an owner must allow; delegate.py: an inner turn
selftest.py  whether a model calls tools here; evaluate/: how many tasks it finishes
tool.py      a typed function becomes a tool; tools/ holds them
sandbox/     where every tool process runs
store/       the only SQL
"""
