"""One answer from the model that Voltaire runs, over the control API; Python's standard library alone.

python examples/answer.py SOCKET "What is a GPU?"

SOCKET is state.dir/run/backend.sock, or [backend] socket of the configuration.
"""

import http.client
import json
import socket
import sys
import urllib.request
from typing import Any

CONTROL_SECONDS = 10
ANSWER_SECONDS = 300


class ControlApi(http.client.HTTPConnection):
    """HTTP over the backend's UNIX socket, which only its own user may open."""

    def __init__(self, path: str) -> None:
        super().__init__("backend", timeout=CONTROL_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

    def get(self, url: str) -> Any:
        self.request("GET", url)
        return json.loads(self.getresponse().read())


def main(path: str, question: str) -> int:
    control = ControlApi(path)
    try:
        server = control.get("/v1/status")["backend"]
    except OSError as error:
        print(f"No backend answers at {path}: {error.strerror}.", file=sys.stderr)
        return 1
    if server["state"] not in ("ready", "busy", "sleeping"):
        print(f"The model server is {server['state']}. {server['reason'] or ''}", file=sys.stderr)
        return 1
    endpoint = control.get("/v1/endpoint")
    body = {
        "model": endpoint["model"],
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 200,
        **endpoint["sampling"],
        "chat_template_kwargs": endpoint["template"],
    }
    request = urllib.request.Request(
        f"{endpoint['url']}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {endpoint['api_key']}"},
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
        print(json.load(answer)["choices"][0]["message"]["content"])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
