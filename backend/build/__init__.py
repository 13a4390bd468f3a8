"""A llama-server for this machine: released (`voltaire server get`) or compiled (`voltaire server build`).

release.py  downloads, checks and installs a build released by the llama.cpp project
recipe.py   toolkits, compilers and CMake's arguments for compiling; or what is missing
build.py    fetches the sources, configures, compiles, installs
"""
