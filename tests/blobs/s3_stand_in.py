"""Stand-in for an S3 server where versitygw is missing: the requests of a log archive, signatures unread."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import unescape

#: objects of a page of a list: the client has to ask for the next ones
PAGE = 2
_XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class _Handler(BaseHTTPRequestHandler):
    """One request; the objects are those of its server."""

    server: "_Server"
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _answer(self, status: int, content: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/xml")
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Mon, 30 Nov 2026 09:00:00 GMT")
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).split("/", 2)[2]

    def do_PUT(self) -> None:
        self.server.objects[self._key] = self._body()
        self._answer(200)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if "list-type" in url.query:
            self._answer(200, self._list({name: values[0] for name, values in parse_qs(url.query).items()}))
            return
        content = self.server.objects.get(self._key)
        if content is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code><Message>absent</Message></Error>")
            return
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if part is None:
            self._answer(200, content)
            return
        last = int(part[2]) if part[2] else len(content) - 1
        self._answer(206, content[int(part[1]) : last + 1])

    def _list(self, query: dict[str, str]) -> bytes:
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        keys = [key for key in sorted(self.server.objects) if key.startswith(prefix) and key > after]
        page = keys[:PAGE]
        following = f"<NextContinuationToken>{quote(page[-1])}</NextContinuationToken>" if page else ""
        rows = "".join(
            f"<Contents><Key>{quote(key)}</Key><Size>{len(self.server.objects[key])}</Size>"
            "<LastModified>2026-11-30T09:00:00.000Z</LastModified><ETag>0</ETag></Contents>"
            for key in page
        )
        head = "<Name>logs</Name><EncodingType>url</EncodingType>"
        is_cut = f"<IsTruncated>{str(len(keys) > PAGE).lower()}</IsTruncated>"
        return f"<ListBucketResult {_XMLNS}>{head}{is_cut}{following}{rows}</ListBucketResult>".encode()

    def do_POST(self) -> None:
        for key in re.findall(r"<Key>(.*?)</Key>", self._body().decode()):
            self.server.objects.pop(unescape(key), None)
        self._answer(200, f"<DeleteResult {_XMLNS}></DeleteResult>".encode())


class _Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        #: key -> content
        self.objects: dict[str, bytes] = {}


@contextmanager
def stand_in() -> Iterator[int]:
    """Run a server with a bucket of any name; return its port."""
    with _Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
