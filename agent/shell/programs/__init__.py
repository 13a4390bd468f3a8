"""One file for each program; agent/shell/__init__.py says how one is written.

web.py  search the web, read its pages
"""
