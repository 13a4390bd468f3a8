"""What the agent does unasked: jobs, an honest ledger of their occurrences, and when it keeps quiet.

rounds.py     the ledger: what is due, what was missed, what runs; knows no clock of its own
scheduler.py  wakes the rounds (APScheduler holds the triggers, in memory)
planner.py    a job made from words
kinds.py      what each kind of job does
"""

from agent.schedule.occurrences import Kind, Nothing, Quiet, Rounds
from agent.schedule.planner import PlanLimits, Planner, Proposal
from agent.schedule.scheduler import Scheduler

__all__ = ["Kind", "Nothing", "PlanLimits", "Planner", "Proposal", "Quiet", "Rounds", "Scheduler"]
