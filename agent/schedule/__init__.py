"""Scheduled jobs: reminders, tasks, summaries, and what else runs at a time.

times/          times in words as rules
arrivals.py     watches of mail, woken by what comes
due_times.py    when a rule is due, and the timer (APScheduler)
planner.py      jobs made, shown and changed in words
watch_words.py  a watch asked for in words
watches.py      what looks without the model (watch.sh), and speaks when something changed
night.py        work that waits for the night
scheduler.py    due times entered as occurrences, run, posted
"""
