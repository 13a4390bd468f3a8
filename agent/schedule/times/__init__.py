"""Times in words: what was meant, or a question back; never a guess.

parse("every weekday at 8", now)                     -> Calendar(...)
parse_with_task("in 20 minutes check the oven", now) -> (Once(...), "check the oven")

parser.py     the English words; clauses of a phrase, in any order
task_text.py  the time and the task of a text
languages.py  what German, French, Spanish, Russian and Chinese say of times, in English
draft.py      what the clauses have said so far, and the rule it comes to
rule.py       rules: their stored form and description

Not dateparser (1.5): of the phrases in the tests it reads 17 of 36 single times in English, 21 of 70 in
the other languages and none of the repeated ones; six that are to be asked back it guesses, and "tomorrow
at 9" becomes tomorrow at this hour.
"""
