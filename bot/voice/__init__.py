"""Voice messages of people, and answers as voice messages.

recordings.py     a recording is transcribed, and its sender shown the words
replies.py        answers are spoken while they are written
"""
