"""A table in an object store: the S3 protocol, as far as reading goes, spoken by a small server of another process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from lakerace.conflicts import APPEND
from lakerace.diagnose.audit import audit
from lakerace.diagnose.bench import make_log
from lakerace.diagnose.explain import explain
from lakerace.diagnose.logread import open_log
from lakerace.diagnose.reported import Reported
from lakerace.diagnose.store import TableUnreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REFUSED = "refused"


class Bucket(BaseHTTPRequestHandler):
    """Each folder below ``root`` is a bucket, which can be listed and read.

    A request that would write leaves a note in the file ``refused`` beside the buckets.
    """

    root: ClassVar[Path]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        bucket, name = self._asked()
        if not bucket.is_dir():
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>", {})
        elif name:
            self._give(bucket / name, body=True)
        else:
            self._list(bucket, {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()})

    def do_HEAD(self) -> None:
        bucket, name = self._asked()
        self._give(bucket / name, body=False)

    def do_PUT(self) -> None:
        with (self.root / REFUSED).open("a") as file:
            file.write(f"{self.command} {self.path}\n")
        self._answer(403, b"", {})

    do_POST = do_DELETE = do_PUT

    def _asked(self) -> tuple[Path, str]:
        """The folder of the bucket, and the key."""
        bucket, _, name = unquote(urlsplit(self.path).path).strip("/").partition("/")
        return self.root / bucket, name

    def _give(self, path: Path, *, body: bool) -> None:
        if not path.is_file():
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>" if body else b"", {})
            return
        content = path.read_bytes()
        headers = {"ETag": f'"{len(content)}"', "Last-Modified": "Mon, 30 Nov 2026 09:00:00 GMT"}
        span = self.headers.get("Range")
        if span and body:
            first, _, last = span.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or len(content) - 1), len(content) - 1)
            headers["Content-Range"] = f"bytes {begin}-{end}/{len(content)}"
            self._answer(206, content[begin : end + 1], headers)
        elif body:
            self._answer(200, content, headers)
        else:
            self._answer(200, b"", {**headers, "Content-Length": str(len(content))})

    def _list(self, bucket: Path, query: dict[str, str]) -> None:
        prefix, cut = query.get("prefix", ""), query.get("delimiter", "")
        names = sorted(path.relative_to(bucket).as_posix() for path in bucket.rglob("*") if path.is_file())
        files, folders = [], set()
        for name in names:
            if name.startswith(prefix):
                rest = name[len(prefix) :]
                if cut and cut in rest:
                    folders.add(prefix + rest.partition(cut)[0] + cut)
                else:
                    files.append(name)
        when = datetime(2026, 11, 30, tzinfo=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        listed = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{when}</LastModified><ETag>&quot;1&quot;</ETag>"
            f"<Size>{(bucket / name).stat().st_size}</Size></Contents>" for name in files
        ) + "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders))
        about = f"<Name>{bucket.name}</Name><IsTruncated>false</IsTruncated>"
        text = f"<ListBucketResult>{about}{listed}</ListBucketResult>"
        self._answer(200, text.encode(), {"Content-Type": "application/xml"})

    def _answer(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests' output is theirs."""


def serve(root: Path) -> None:
    """Serve until the process ends; the port is the first line of stdout."""
    handler = type("Served", (Bucket,), {"root": root})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """The folder of the buckets, and the port at which they are served.

    In a process of its own: the library keeps Python's lock while it waits for an answer.
    """
    root = tmp_path_factory.mktemp("store")
    command = [sys.executable, __file__, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as done:
        assert done.stdout is not None
        yield root, int(done.stdout.readline())
        done.terminate()


@pytest.fixture
def bucket(store: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that the bucket ``lake`` shows, empty at first; nothing may be written to it."""
    root, port = store
    settings = {"ENDPOINT_URL": f"http://127.0.0.1:{port}", "ALLOW_HTTP": "true", "REGION": "eu-central-1",
                "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "EC2_METADATA_DISABLED": "true"}
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    folder = root / "lake"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)
    assert not (root / REFUSED).exists(), (root / REFUSED).read_text()


def test_an_audit_of_s3_is_that_of_the_folder(bucket: Path) -> None:
    make_log(bucket / "orders", 100)
    (bucket / "orders" / "day=2026-01-01").mkdir()
    (bucket / "orders" / "day=2026-01-01" / "lost.parquet").write_bytes(b"x" * 77)
    there, here = audit(open_log("s3://lake/orders")), audit(open_log(str(bucket / "orders")))
    assert (there.orphans.count, there.orphans.size) == (1, 77)
    assert replace(there, table="", orphans=here.orphans) == replace(here, table="")


def test_an_explanation_of_s3(bucket: Path) -> None:
    make_log(bucket / "orders", 40)
    reported = Reported(kind=APPEND, exception="ConcurrentAppendException", version=20)
    found = explain(open_log("s3://lake/orders/"), reported=reported, statement="UPDATE orders SET note = 'x' WHERE "
                                                                                "id = 1")
    assert found.winner is not None
    assert (found.winner.version, found.winner.operation, found.agrees) == (20, "UPDATE", True)


@pytest.mark.parametrize(
    ("place", "said"), [("s3://lake/nothing", "it has no _delta_log"), ("s3://lake", "it has no _delta_log")]
)
def test_no_table_there_is_one_line(bucket: Path, place: str, said: str) -> None:
    with pytest.raises(TableUnreadable, match=f"^[^\n]*{said}[^\n]*$"):
        open_log(place)


def test_a_store_that_refuses_is_one_line(bucket: Path, told: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = told("diagnose", "s3://forbidden/orders")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("lakerace: s3://forbidden/orders: ")


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
