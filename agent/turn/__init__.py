"""One turn, from the person's message to the answer.

loop.py              run_turn: ask, run tools, repeat until there is an answer or a limit
turn.py              what a turn is given, its limits, its ending
conversation.py      the turn's messages and tokens, and the journal that keeps each step
model_caller.py      one completion, whatever the server does meanwhile
step.py              what one completion says: text and calls
tool_runner.py       the calls of a step, and what the turn has done so far
answer_checks.py     answers that are empty, cut off, or claim what was not done
leak_guard.py        no secrets in what is shown and answered
repetition.py        words, and calls with the same results, over and over
untrusted_reader.py  a stranger's text to an extract, by a model call without tools
delegate.py          a sub-task in an inner turn
texts.py             the fixed sentences
"""
