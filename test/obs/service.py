"""A service for tests: answers each request with what the test has queued for its path."""

import contextlib
import http.server
import json
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        content = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.requests.append((self.path, dict(self.headers), content))
        status, body, headers = (self.server.answers.get(self.path) or [(404, {}, {})]).pop(0)
        if status is None:  # The request has arrived, and its answer is lost.
            self.close_connection = True
            return
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Service(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests, self.answers = [], {}

    def will(self, path, status, body=None, headers=None):
        self.answers.setdefault(path, []).append((status, body if body is not None else {}, headers or {}))

    def sent(self, path):
        return [(headers, content) for requested, headers, content in self.requests if requested == path]


@contextlib.contextmanager
def running():
    service = Service()
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
