"""Compiling a llama-server for this machine: `voltaire server build`.

recipe.py   how: toolkits, compilers, CMake's arguments; or what is missing
build.py    sources, configuring, compiling, installing
"""
