"""The web, as text.

browser.py          what a chat may search and read, and which addresses need no question
chromium.py         renders pages that scripts make
search.py           searches, by a SearXNG of the owner's
search_services.py  searches, by a service with the owner's key
fetch.py            gets a page from an allowed host
html_text.py        reads its HTML
"""
