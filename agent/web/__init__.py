"""The web, as text: fetch.py gets a page from an allowed host, html_text.py reads its HTML."""
