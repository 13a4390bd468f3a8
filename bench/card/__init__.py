"""What only a card can show, measured on one in under ten minutes: `make card`.

The machine with the card needs nvcc, CMake, a C++ compiler and Python 3.11 or
newer, and no network: `make card-kit` packs the rest beforehand.

kit.py       the kit: llama.cpp's sources, packages, small programs; packed and unpacked
__main__.py  the one command: unpacks, then goes on with the kit's packages in run.py
run.py       the steps one after the other, each with a time of its own
build.py     compiling the server
card.py      the card, or its stand-in; memory held on it; what it does under load
memory.py    computed memory beside the server's log
speed.py     prompt cache, reading again, drafting
whole.py     too little memory, no card, a whole turn, doctor and status
table.py     what is printed
"""
