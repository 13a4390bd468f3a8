"""The only place that knows the OpenAI wire form.

wire.py     our messages and requests as JSON, the same bytes every time
sse.py      bytes of an event stream to JSON values
chunks.py   streamed chunks to pieces, joined first and parsed once
figures.py  token counts and speeds, from whichever fields the server gives
client.py   OpenAIModel: the HTTP conversation, its signs of life, its errors
"""

from agent.llm.openai.client import OpenAIModel

__all__ = ["OpenAIModel"]
