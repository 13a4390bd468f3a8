"""How the agent reaches a language model.

openai/            chat completions over HTTP, the wire form
tool_call_parser/  tool calls that came as text
gpu_queue.py       the queue for the GPU, and models whose calls wait in it
selftest.py        whether a model calls tools here
"""
