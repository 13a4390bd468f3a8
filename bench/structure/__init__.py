"""Figures of the code's structure, for any checkout of this project, old or new.

python -m bench.structure [--root DIR] [--static] [--json]

source   what the files say: lines, importers, names, functions, import cycles
frames   what runs: stack frames and modules that one message passes, in a real bot
probe    runs inside that bot and looks at it; imports nothing of this project
"""
