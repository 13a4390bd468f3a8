"""What a prompt holds, and what happens when it is full.

window.py           how full a prompt is, of which parts, and when it is compacted or warmed
compactor.py        one compaction, from the count to the summary and the rows written
compaction_plan.py  what leaves or is shortened, in which order; pure
user_message.py     a person's waiting words as the one message that the model gets
cache_audit.py      what the server read again although it was known, and why
"""
