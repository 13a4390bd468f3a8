"""The web, as text: fetch.py gets a page from an allowed host, page.py reads its HTML."""

from agent.web.fetch import Fetcher

__all__ = ["Fetcher"]
