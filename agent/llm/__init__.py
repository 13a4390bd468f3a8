"""How the agent reaches a language model.

openai/            chat completions over HTTP, the wire form
tool_call_parser/  tool calls that came as text
queued_model.py    models whose calls wait for the GPU, in the queue of the backend
selftest.py        whether a model calls tools here
"""
