"""What a chat remembers: notes, and what was said.

notes.py   remember, recall, export
search.py  ranking by words and recency; by meaning, where an embedding server is configured
"""
