"""What the program does itself while the toy model of the demo (pocket) serves.

answers.py    the toy with the program in front of it: fixed answers, and checks of what the toy writes
wishes.py     wishes that the program carries out with a tool call of its own
sums.py       sums that are asked for in words
languages.py  what is asked in other languages than English
texts.py      the fixed sentences
"""
