"""A server with what the protocol's published checks call (test_simple_text and so on), made of the classes of
`voltaire mcp serve`, so that those checks reach what both are made of."""

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.mcpserver.tools import Tool
from mcp.types import (
    AudioContent,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
DIALECT = "https://json-schema.org/draft/2020-12/schema"
DIALECT_TOOL = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
A_TOOL = "A tool of the checks."
WORDS = ["one", "two"]
TITLED = [{"const": "one", "title": "One"}, {"const": "two", "title": "Two"}]
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": {"type": "string", "enum": WORDS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": WORDS, "enumNames": ["One", "Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": WORDS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def conformance_server() -> MCPServer:
    def json_schema_2020_12_tool() -> str:
        """A schema of draft 2020-12."""
        return "done"

    dialect = Tool.from_function(json_schema_2020_12_tool)
    tools = [dialect.model_copy(update={"parameters": DIALECT_TOOL})]
    server = MCPServer("conformance", tools=tools, log_level="CRITICAL")
    add_tools(server)
    add_asking_tools(server)
    add_resources(server)
    add_prompts(server)
    add_older_methods(server)
    return server


def embedded(uri: str) -> EmbeddedResource:
    said = TextResourceContents(uri=uri, mime_type="text/plain", text="Embedded.")
    return EmbeddedResource(type="resource", resource=said)


def giving(content: list[Any]) -> Callable[[], list[Any]]:
    def give() -> list[Any]:
        return content

    return give


def add_tools(server: MCPServer) -> None:
    image = ImageContent(type="image", data=PNG, mime_type="image/png")
    audio = AudioContent(type="audio", data=WAV, mime_type="audio/wav")
    text = TextContent(type="text", text="This is a simple text response for testing.")
    given: dict[str, list[Any]] = {
        "test_simple_text": [text],
        "test_image_content": [image],
        "test_audio_content": [audio],
        "test_embedded_resource": [embedded("test://embedded-resource")],
        "test_multiple_content_types": [text, image, embedded("test://mixed-content-resource")],
        "test_reconnection": [text],
    }
    for name, content in given.items():
        server.add_tool(giving(content), name, description=name, structured_output=False)

    @server.tool(description=A_TOOL, structured_output=False)
    def test_error_handling() -> str:
        raise RuntimeError("This tool intentionally returns an error for testing")

    @server.tool(description=A_TOOL, structured_output=False)
    async def test_tool_with_logging(ctx: Context) -> str:
        for step in ("started", "goes on", "ended"):
            await ctx.session.send_log_message("info", step, related_request_id=ctx.request_id)
        return "done"

    @server.tool(description=A_TOOL, structured_output=False)
    async def test_tool_with_progress(ctx: Context) -> str:
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
        return "done"


def add_asking_tools(server: MCPServer) -> None:
    """Tools that ask the client for something."""

    async def elicited(ctx: Context, message: str, properties: dict[str, Any]) -> str:
        wanted = {"type": "object", "properties": properties, "required": []}
        answer = await ctx.session.elicit_form(message, wanted, ctx.request_id)
        return f"{answer.action}: {json.dumps(answer.content)}"

    @server.tool(description=A_TOOL, structured_output=False)
    async def test_elicitation(message: str, ctx: Context) -> str:
        return await elicited(ctx, message, {"response": {"type": "string"}})

    @server.tool(description=A_TOOL, structured_output=False)
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        return await elicited(ctx, "Defaults?", DEFAULTS)

    @server.tool(description=A_TOOL, structured_output=False)
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        return await elicited(ctx, "Which?", ENUMS)

    @server.tool(description=A_TOOL, structured_output=False)
    async def test_sampling(prompt: str, ctx: Context) -> str:
        asked = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        answer = await ctx.session.create_message(
            [asked], max_tokens=100, related_request_id=ctx.request_id
        )
        return str(answer.content)


def add_resources(server: MCPServer) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return b64decode(PNG)

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        return json.dumps({"id": id})

    @server.resource("test://watched-resource")
    def watched() -> str:
        return "watched"


def add_prompts(server: MCPServer) -> None:
    @server.prompt(description="A prompt of the checks.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="A prompt of the checks.")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="A prompt of the checks.")
    def test_prompt_with_embedded_resource(resourceUri: str) -> UserMessage:
        return UserMessage(embedded(resourceUri))

    @server.prompt(description="A prompt of the checks.")
    def test_prompt_with_image() -> UserMessage:
        return UserMessage(ImageContent(type="image", data=PNG, mime_type="image/png"))


def add_older_methods(server: MCPServer) -> None:
    """Those that MCPServer has no decorator for; the capabilities follow from them."""

    async def accept(ctx: Any, params: Any) -> EmptyResult:
        return EmptyResult()

    async def complete(ctx: Any, params: Any) -> CompleteResult:
        return CompleteResult(completion=Completion(values=[], total=0, has_more=False))

    handlers = server._lowlevel_server
    handlers.add_request_handler("completion/complete", CompleteRequestParams, complete)
    for method, params in {
        "logging/setLevel": SetLevelRequestParams,
        "resources/subscribe": SubscribeRequestParams,
        "resources/unsubscribe": UnsubscribeRequestParams,
    }.items():
        handlers.add_request_handler(method, params, accept)
