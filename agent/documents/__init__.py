"""A person's own documents: their text in passages, searched by words and by meaning.

extraction.py  one document to passages (a program of its own, inside of a sandbox)
reading.py     runs it there
meaning.py     which passages come nearest to a question
library.py     what one chat may look at: list, search, show, add, forget
indexer.py     reads what waits, and watches the owner's folders, while nobody waits
"""
