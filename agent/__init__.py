"""The turn and what it may do. Knows no messaging app.

    chats.py     one worker per chat: inbox to turn, turn to outbox
    loop.py      run_turn: ask, act, repeat
    prompt.py    the fixed prefix and the tail; window.py: what leaves when it is full
    model.py     what a model is to us; openai.py speaks the wire form
    tool.py      a typed function becomes a tool; tools/ holds them
    sandbox/     where every tool process runs
    store/       the only SQL
"""
