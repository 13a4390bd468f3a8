"""The only place that knows the OpenAI wire form.

client.py        OpenAIModel: the HTTP conversation, its signs of life
prompt_form.py   the forms that chat templates take, and messages in them
template_probes.py  finds the form that a server's template takes, by rendering
call_grammar.py  the grammar under which calls stay readable
wire.py          requests as JSON, with the same bytes every time
chunks.py        an answer's bytes to pieces; token counts and speeds from whichever fields the server gives
streamed_calls.py   joins calls from the pieces of a stream
values.py        reads JSON of unknown shape
"""

from agent.llm.openai.client import OpenAIModel
from agent.llm.openai.prompt_form import message_json

__all__ = ["OpenAIModel", "message_json"]
