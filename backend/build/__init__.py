"""A llama-server for this machine: released (`voltaire server get`) or compiled (`voltaire server build`).

release.py  the project's own build: which, fetched, checked, installed
recipe.py   compiling: toolkits, compilers, CMake's arguments; or what is missing
build.py    sources, configuring, compiling, installing
"""
