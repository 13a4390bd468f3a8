"""Voice messages of people, and answers as voice messages.

setting.py        when a chat's answers are spoken
recordings.py     a recording becomes words, which its sender is shown
replies.py        answers are spoken while they are written
spoken_text.py    an answer in Markdown as the sentences that are said
"""
