"""Voice messages of people, and answers as voice messages.

setting.py        when a chat's answers are spoken
recordings.py     a recording is transcribed, and its sender shown the words
replies.py        answers are spoken while they are written
"""
