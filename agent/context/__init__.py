"""What a prompt holds, and what happens when it is full.

window.py           how full a prompt is, with what, and when it is compacted or warmed
compaction_plan.py  what leaves or is shortened, in which order, and the summary that stands for it; pure functions
user_message.py     a person's waiting messages as one message for the model
cache_audit.py      what the server prefilled again although it was cached, and why
"""
