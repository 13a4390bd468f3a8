"""The web, as text.

browser.py    what a chat may search and read, and which addresses need no question
search.py     searches, by a SearXNG of the owner's
fetch.py      gets a page from an allowed host
html_text.py  reads its HTML
"""
