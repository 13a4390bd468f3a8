"""Times in words: what was meant, or a question back; never a guess.

parse("every weekday at 8", now)                     -> Calendar(...)
parse_with_task("in 20 minutes check the oven", now) -> (Once(...), "check the oven")

parser.py     the English words; clauses of a phrase, in any order
languages.py  what German, French, Spanish, Russian and Chinese say of times, in English
cron.py       five-field cron expressions
draft.py      what the clauses have said so far, and the rule it comes to
rule.py       rules: their due times, stored form and description

Not dateparser: of the phrases in the tests it reads half of the single times and none of the
repeated ones, and it neither finds the task nor asks back. Not dateutil.rrule: it saves twelve
lines, has no time zones, and searches to the year 9999 for a day that never comes. Not croniter:
it reads `13-13` as `*`, and takes 0.7 s to import.
"""
