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
           "ignore"   send the whole file, whatever part was asked for
           "elsewhere"  send another part than the one that was asked for
           "endless"  send the file again and again, and do not say how much will come
           "unknown"  send the file, and do not say how much will come
           a number   this status
    asked  the path, the first byte asked for and the number of bytes sent, of each request
    """

    files: dict
    plan: list = field(default_factory=list)
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
            begin = int(self.headers.get("Range", "bytes=0-")[6:-1])
            asked = [self.path, begin, 0]
            site.asked.append(asked)
            content = site.files.get(self.path)
            if isinstance(way, int) or content is None:
                return self.send_error(way or 404)
            if begin >= len(content) > 0 and way != "ignore":
                return self.send_error(416)
            begin = {"ignore": 0, "elsewhere": begin // 2}.get(way, begin)
            body = content[begin:]
            self.head(begin, len(content), way not in ("endless", "unknown"))
            if way in ("break", "stall"):
                body = body[: len(body) // 2]
            asked[2] = len(body)
            self.wfile.write(body)
            self.and_then(body, way)
            return None

        def head(self, begin, size, says_length):
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
            if says_length:
                self.send_header("Content-Length", str(size - begin))
            self.end_headers()

        def and_then(self, body, way):
            if way == "stall":
                site.ended.wait()
            if way == "endless":
                for _ in range(1000):
                    self.wfile.write(body)

        def handle(self):
            with suppress(OSError):  # the other side goes away, as some tests want
                super().handle()

        def log_message(self, *_):
            pass

    return Handler
