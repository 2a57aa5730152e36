"""A server whose every frame is written by the test: for what the real server sends rarely or too quickly."""

import mimetypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgpack
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from orchestrator.api.routes.page import VIEWS

CONVERSATION = "conv_scripted"
ERROR, USER_MESSAGE, ACKNOWLEDGEMENT, CONFIGURATION, START, TRACE, SENTENCE = 1, 2, 8, 12, 13, 14, 16
# As strict as the real server's, so that a page that needs more fails here too.
POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Connection:
    """The server's end of one WebSocket that the page opened."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    def receive(self) -> dict[str, Any]:
        """Wait for the next envelope of the page."""
        envelope: dict[str, Any] = msgpack.unpackb(self._socket.recv())
        return envelope

    def send(self, stanza: int, kind: int, *, meta: dict[str, Any] | None = None, **body: Any) -> None:
        """Send one envelope."""
        envelope = {"stanzaId": stanza, "conversationId": CONVERSATION, "type": kind, "meta": meta or {}}
        packet: bytes = msgpack.packb({**envelope, "body": {**body, "conversationId": CONVERSATION}})
        self._socket.send(packet)

    def shake_hands(self, last_client: int = 1, last_server: int = 0) -> dict[str, Any]:
        """Receive the page's Configuration and answer it. Returns the body of the page's."""
        received = self.receive()
        self.send(0, CONFIGURATION, lastClientStanza=last_client, lastServerStanza=last_server)
        self.send(0, ACKNOWLEDGEMENT, acknowledgedStanzaId=received["stanzaId"], success=True)
        body: dict[str, Any] = received["body"]
        return body

    def cut(self) -> None:
        """Break the connection without a closing handshake."""
        self._socket.close_socket()

    def wait_until_closed(self) -> None:
        """Wait until the page closes the connection."""
        for _ in self._socket:
            pass


@contextmanager
def scripted_server(files: Path, *scripts: Callable[[Connection], None]) -> Iterator[str]:
    """Serve the page; the first connection runs the first script, and so on. Yields the address.

    An exception in a script is raised again after the body.
    """
    scripts_left = iter(scripts)
    failures: list[BaseException] = []

    def run_script(socket: ServerConnection) -> None:
        connection = Connection(socket)
        try:
            if script := next(scripts_left, None):
                script(connection)
            connection.wait_until_closed()
        except ConnectionClosed:
            pass
        except BaseException as failure:
            failures.append(failure)

    def answer_request(_: ServerConnection, request: Request) -> Response | None:
        path = request.path.split("?")[0]
        if path == "/v1/ws":
            return None
        if path == "/v1/session":
            person = b'{"person": "local"}'
            headers = {"Content-Type": "application/json", "Content-Length": str(len(person))}
            return Response(HTTPStatus.OK, "OK", Headers(headers), person)
        is_view = path.split("/")[1] in VIEWS
        file = files / ("index.html" if is_view or path == "/" else path.lstrip("/"))
        if not file.is_file():
            return Response(HTTPStatus.NOT_FOUND, "Not Found", Headers())
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        body = file.read_bytes()
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY}
        return Response(HTTPStatus.OK, "OK", Headers({**headers, "Connection": "close"}), body)

    with serve(run_script, "127.0.0.1", 0, process_request=answer_request) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}/"
        finally:
            server.shutdown()
            thread.join()
    if failures:
        raise failures[0]
