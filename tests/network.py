"""What tests of the live monitor share: a web server that answers as told, and waiting with an end."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


def wait_until(is_done, seconds=60, why=lambda: ""):
    deadline = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < deadline, why()
        time.sleep(0.01)


def episode(stream, number, success=True, **more):
    return {"stream": stream, "episode": str(number), "success": success, **more}


class Listener:
    """A web server of which `answer(headers, body)` gives status, headers and text."""

    def __init__(self, answer):
        self.answer = answer
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, text = outer.answer(dict(self.headers), body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
