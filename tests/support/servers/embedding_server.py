"""A server with an OpenAI-style `/embeddings`, whose replies a test can script."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from agents.embedders.scripted import WordEmbedder


@dataclass
class EmbeddingServer:
    """What it was asked, and what it replies next instead of vectors: a status and a text."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    replies: list[tuple[int, str]] = field(default_factory=list)


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    """Runs the server. Texts that share words have vectors near each other; rows come in reverse order."""
    state, model = EmbeddingServer(), WordEmbedder()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append({"path": self.path, **asked})
            state.keys.append(self.headers.get("Authorization", ""))
            rows = [
                {"index": place, "embedding": (3 * vector).tolist()}
                for place, vector in enumerate(model.embed(asked["input"]))
            ]
            status, text = state.replies.pop(0) if state.replies else (200, json.dumps({"data": rows[::-1]}))
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
