"""A server whose every word is written by the test: for what the real one says rarely, or too quickly."""

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

CONVERSATION = "conv_scripted"
ERROR, USER_MESSAGE, ACKNOWLEDGEMENT, CONFIGURATION, START, TRACE, SENTENCE = 1, 2, 8, 12, 13, 14, 16
# As strict as the real one's, so that a page that needs more fails here too.
POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Line:
    """One connection of the page."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def hear(self) -> dict[str, Any]:
        """The next envelope the page sends."""
        envelope: dict[str, Any] = msgpack.unpackb(self._connection.recv())
        return envelope

    def say(self, stanza: int, kind: int, *, meta: dict[str, Any] | None = None, **body: Any) -> None:
        """Send one envelope."""
        envelope = {"stanzaId": stanza, "conversationId": CONVERSATION, "type": kind, "meta": meta or {}}
        packet: bytes = msgpack.packb({**envelope, "body": {**body, "conversationId": CONVERSATION}})
        self._connection.send(packet)

    def greet(self, last_client: int = 1, last_server: int = 0) -> dict[str, Any]:
        """Take the page's Configuration and answer it; gives its body."""
        asked = self.hear()
        self.say(0, CONFIGURATION, lastClientStanza=last_client, lastServerStanza=last_server)
        self.say(0, ACKNOWLEDGEMENT, acknowledgedStanzaId=asked["stanzaId"], success=True)
        body: dict[str, Any] = asked["body"]
        return body

    def cut(self) -> None:
        """Break the connection, without a goodbye."""
        self._connection.close_socket()

    def wait(self) -> None:
        """Until the page leaves."""
        for _ in self._connection:
            pass


@contextmanager
def scripted_server(files: Path, *scripts: Callable[[Line], None]) -> Iterator[str]:
    """The address of a server with the page; its first connection follows the first script, and so on."""
    left = iter(scripts)
    failures: list[BaseException] = []

    def attend(connection: ServerConnection) -> None:
        line = Line(connection)
        try:
            if script := next(left, None):
                script(line)
            line.wait()
        except ConnectionClosed:
            pass
        except BaseException as failure:
            failures.append(failure)

    def answer(_: ServerConnection, request: Request) -> Response | None:
        path = request.path.split("?")[0]
        if path == "/v1/ws":
            return None
        if path == "/v1/session":
            return Response(HTTPStatus.NO_CONTENT, "No Content", Headers())
        file = files / (path.lstrip("/") or "index.html")
        if not file.is_file():
            return Response(HTTPStatus.NOT_FOUND, "Not Found", Headers())
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        body = file.read_bytes()
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY}
        return Response(HTTPStatus.OK, "OK", Headers({**headers, "Connection": "close"}), body)

    with serve(attend, "127.0.0.1", 0, process_request=answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}/"
        finally:
            server.shutdown()
            thread.join()
    if failures:
        raise failures[0]
