"""What a chat remembers: notes and past messages.

notes.py   remember, recall, export
search.py  ranking by words and recency; by meaning, where an embedding server is configured
"""
