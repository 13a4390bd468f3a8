"""Scheduled jobs: reminders, tasks, summaries, and what else runs at a time.

times/          times in words as rules
triggers.py     when a rule is due, and the timer (APScheduler)
job_kind.py     which kind of job the words of a task ask for
planner.py      jobs made, shown and changed in words
job_actions.py  what a reminder, a task and a summary do
scheduler.py    due times entered as occurrences, run, posted
"""
