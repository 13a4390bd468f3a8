"""What happened in a repository: facts by git, prose by the model, checked against the facts."""

from agent.summary.card import card
from agent.summary.facts import Facts, Missing, Range, collect, ranges
from agent.summary.prose import checked, prose, worded

__all__ = ["Facts", "Missing", "Range", "card", "checked", "collect", "prose", "ranges", "worded"]
