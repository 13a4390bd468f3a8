"""Calls over the wire: what is sent, what errors mean, and that connections are kept."""

import gzip
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from io import BytesIO

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from telegram import Bot, InputFile
from telegram.error import BadRequest, NetworkError, TimedOut

from bot.channel import DeliveryUncertain, NotSent
from bot.telegram.connection import Connection, TooLong
from bot.telegram.message_calls import channel_error
from fakes.patience import SECONDS

TOKEN = "1:x"


class Server:
    """Answers every call as the test says, and keeps what came."""

    def __init__(self) -> None:
        self.url = ""
        self.peers: list[object] = []
        self.fields: list[dict[str, object]] = []
        self.lengths: list[int | None] = []
        self.statuses: list[int] = []
        self.endless = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport
        self.peers.append(request.transport.get_extra_info("peername"))
        self.lengths.append(request.content_length)
        self.fields.append(await _read(request))
        if self.endless:
            return await self._without_end(request)
        if self.statuses and (status := self.statuses.pop(0)) != 200:
            if status == 0:
                request.transport.close()
                return web.Response()
            told = {"ok": False, "error_code": status, "description": "Bad Request: IMAGE"}
            return web.json_response(told, status=status)
        message = {"message_id": 5, "date": 0, "chat": {"id": 7, "type": "private"}}
        return web.json_response({"ok": True, "result": message})

    async def _without_end(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await answer.prepare(request)
        packed = gzip.compress(bytes(1 << 20))
        with suppress(ConnectionError):
            while True:
                await answer.write(packed)
        return answer


async def _read(request: web.Request) -> dict[str, object]:
    form = await request.post()
    return {
        name: (value.filename, value.content_type, value.file.read())
        if isinstance(value, web.FileField)
        else value
        for name, value in form.items()
    }


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with TestServer(app) as listening:
        server.url = f"http://127.0.0.1:{listening.port}"
        yield server


@pytest.fixture
async def bot(server: Server) -> AsyncIterator[Bot]:
    connection = Connection(server.url, SECONDS)
    await connection.initialize()
    yield Bot(TOKEN, f"{server.url}/bot", request=connection)
    await connection.shutdown()


async def test_one_connection_serves_many_calls(server: Server, bot: Bot) -> None:
    for _ in range(3):
        await bot.send_message(7, "hello <b> & \U0001f600")
    assert len(set(server.peers)) == 1
    assert server.fields[0] == {"chat_id": "7", "text": "hello <b> & \U0001f600"}


async def test_a_file_goes_whole_and_again_after_a_refusal(server: Server, bot: Bot) -> None:
    file = BytesIO(bytes(range(256)) * 1000)
    content = InputFile(file, filename='né "1"\n.bin', read_file_handle=False)
    server.statuses = [400, 200]
    with pytest.raises(BadRequest):
        await bot.send_document(7, content, caption="see")
    await bot.send_document(7, content, caption="see")
    assert server.fields[1]["document"] == (
        'né "1"_.bin',
        "application/octet-stream",
        file.getvalue(),
    )
    assert server.fields[1]["caption"] == "see"
    assert server.fields[0] == server.fields[1]
    assert None not in server.lengths  # not chunked
    assert not file.closed


async def test_what_never_left_is_surely_not_sent() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        connection = Connection("http://x", SECONDS)
        await connection.initialize()
        bot = Bot(TOKEN, f"http://127.0.0.1:{free.getsockname()[1]}/bot", request=connection)
        with pytest.raises(NetworkError) as told:
            await bot.send_message(7, "hi")
        await connection.shutdown()
    assert str(told.value) == "Connection refused"
    assert isinstance(channel_error(told.value), NotSent)


async def test_a_url_that_is_none_keeps_the_token_to_itself() -> None:
    connection = Connection("ftp://x", 0.5)
    await connection.initialize()
    with pytest.raises(NetworkError) as told:
        await Bot(TOKEN, "ftp://x/bot", request=connection).get_me()
    await connection.shutdown()
    assert str(told.value) == "its URL is not valid"


async def test_an_answer_without_end_is_given_up(server: Server) -> None:
    """Also one that is small until it is unpacked."""
    server.endless = True
    connection = Connection(server.url, SECONDS, longest=1 << 20)
    await connection.initialize()
    with pytest.raises(TooLong, match="more than 1 MiB"):
        await Bot(TOKEN, f"{server.url}/bot", request=connection).get_me()
    await connection.shutdown()


async def test_what_was_cut_off_may_have_been_done(server: Server, bot: Bot) -> None:
    server.statuses = [0]
    with pytest.raises(NetworkError) as told:
        await bot.send_message(7, "hi")
    assert isinstance(channel_error(told.value), DeliveryUncertain)
    assert TOKEN not in str(told.value)


async def test_a_silent_server_is_waited_for_so_long(unused: socket.socket) -> None:
    url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    connection = Connection(url, 0.5)
    await connection.initialize()
    with pytest.raises(TimedOut) as told:
        await Bot(TOKEN, f"{url}/bot", request=connection).send_message(7, "hi")
    await connection.shutdown()
    assert isinstance(channel_error(told.value), DeliveryUncertain)


@pytest.fixture
def unused() -> Iterator[socket.socket]:
    """Takes connections and says nothing."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    yield listening
    listening.close()
