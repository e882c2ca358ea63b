"""A small HTTP server for the tests of downloads, which can be told to fail in many ways."""

import http.server
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Site:
    """What a server has, how it is to answer, and what it was asked.

    files  content by path, as in "/a.gz"
    plan   how to answer the next requests, in this order; then all is well. One of:
           "break"    close the connection after half of the bytes
           "stall"    send half of the bytes, and then nothing until the test has ended
           "endless"  send the file again and again, and do not say how much will come
           "unknown"  send the file, and do not say how much will come
           a number   this status
    kinds  Content-Type by path
    asked  the path of each request
    """

    files: dict
    plan: list = field(default_factory=list)
    kinds: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    address: str = ""
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(files):
    """Serve the files on this machine; yields the Site."""
    site = Site(files)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(site))
    server.daemon_threads = True
    site.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield site
    finally:
        site.ended.set()
        server.shutdown()
        server.server_close()


def handler(site):
    """A request handler that does as the site's plan says."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            way = site.plan.pop(0) if site.plan else None
            content = site.files.get(self.path)
            site.asked.append(self.path)
            if isinstance(way, int) or content is None:
                return self.send_error(way or 404)
            self.send_response(200)
            self.send(content, way)
            return None

        def send(self, content, way):
            if way not in ("endless", "unknown"):
                self.send_header("Content-Length", str(len(content)))
            if self.path in site.kinds:
                self.send_header("Content-Type", site.kinds[self.path])
            self.end_headers()
            much = len(content) // 2 if way in ("break", "stall") else len(content)
            self.wfile.write(content[:much])
            if way == "stall":
                site.ended.wait()
            if way == "endless":
                for _ in range(1000):
                    self.wfile.write(content)

        def handle(self):
            with suppress(OSError):  # the other side goes away, as some tests want
                super().handle()

        def log_message(self, *_):
            pass

    return Handler
