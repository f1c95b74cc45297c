"""Who may ask what: a visitor without the token, other sites, odd paths, large queries."""

from __future__ import annotations

import base64
import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import ConfigError
from advisor.web.picture import Picture
from advisor.web.settings import PageSettings
from tests.web.serving import served

TOKEN = "b9d1c2f0a7e44c1f"
PATHS = (
    "/",
    "/api/now",
    "/api/live",
    "/api/course?host=a",
    "/api/findings",
    "/api/reports",
    "/palette.css",
    "/static/page.js",
    "/reports/week.html",
    "/nowhere",
)


class Nothing:
    """A source that holds nothing, and fails the test where somebody unasked reads it."""

    kind = "store"
    every = 2.0

    def __init__(self) -> None:
        self.read = 0

    def look(self) -> Picture:
        self.read += 1
        return Picture()

    def series(self, host: str, since: int, until: int) -> None:
        self.read += 1


class Asked:
    """One answer."""

    def __init__(self, url: str, path: str, method: str = "GET", **headers: str) -> None:
        host = url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=10)
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=fields)
        answer = connection.getresponse()
        self.status = answer.status
        self.headers = answer.headers
        self.body = b"" if path == "/api/live" and answer.status == 200 else answer.read()
        connection.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state") / "reports"
    folder.mkdir()
    (folder / "week.html").write_text("<h1>a week</h1>")
    (folder.parent / "secret.html").write_text("a secret")
    (folder / "link.html").symlink_to(folder.parent / "secret.html")
    (folder / "notes.exe").write_text("no report")
    return folder


@pytest.fixture(scope="module")
def elsewhere(reports: Path) -> Iterator[tuple[str, Nothing]]:
    source = Nothing()
    with served(source, token=TOKEN, loopback=False, reports=reports) as url:
        yield url, source


@pytest.fixture(scope="module")
def here(reports: Path) -> Iterator[str]:
    with served(Nothing(), reports=reports) as url:
        yield url


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic " + base64.b64encode(b"me:wrong").decode()},
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic " + base64.b64encode(TOKEN.encode()).decode()},
        {"Cookie": f"token={TOKEN}"},
    ],
    ids=["none", "bearer", "empty", "basic", "no base64", "as the name", "cookie"],
)
def test_without_the_token_there_is_nothing(
    elsewhere: tuple[str, Nothing], path: str, given: dict[str, str]
) -> None:
    url, source = elsewhere
    before = source.read
    answer = Asked(url, path, **given)
    assert answer.status == 401
    assert answer.body == b""
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    assert source.read == before
    # Nor by the query, which would be kept in histories and logs.
    assert Asked(url, f"{path.partition('?')[0]}?token={TOKEN}").status == 401


@pytest.mark.parametrize(
    "given",
    [f"Bearer {TOKEN}", "Basic " + base64.b64encode(f"anybody:{TOKEN}".encode()).decode()],
)
def test_with_the_token_the_page_is_there(elsewhere: tuple[str, Nothing], given: str) -> None:
    url, _ = elsewhere
    for path, status in (("/", 200), ("/api/now", 200), ("/static/page.js", 200)):
        assert Asked(url, path, Authorization=given).status == status
    assert Asked(url, "/reports/week.html", Authorization=given).body == b"<h1>a week</h1>"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/now", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ("/api/now", {"Sec-Fetch-Site": "same-site"}, 403),
        ("/api/live", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("/static/page.js", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"}, 403),
        ("/reports/week.html", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("/", {"Sec-Fetch-Site": "cross-site"}, 403),
        (
            "/",
            {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "iframe",
            },
            403,
        ),
        # A link in a chat or a mail opens the page, which holds no data by itself.
        (
            "/",
            {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "document",
            },
            200,
        ),
        ("/api/now", {"Origin": "http://evil.example"}, 403),
        ("/api/now", {"Origin": "null"}, 403),
        ("/api/now", {"Host": "evil.example"}, 403),
        ("/api/now", {"Host": "localhost.evil.example:80"}, 403),
        ("/api/now", {"Host": "127.0.0.1.nip.io"}, 403),
        ("/api/now", {"Host": "localhost:8470"}, 200),
        ("/api/now", {"Host": "[::1]:8470"}, 200),
        ("/api/now", {"Content-Length": "0"}, 200),
    ],
)
def test_other_sites_are_refused(
    here: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = Asked(here, path, **headers)
    assert answer.status == status
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_it_only_reads(here: str, method: str) -> None:
    assert Asked(here, "/api/now", method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/reports/../secret.html",
        "/reports/%2e%2e/secret.html",
        "/reports/..%2fsecret.html",
        "/reports/%2e%2e%2fsecret.html",
        "/reports/..%5csecret.html",
        "/reports/link.html",
        "/reports/notes.exe",
        "/reports/",
        "/reports",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "//etc/passwd",
        "/static/page.js%00.html",
        "/api/now/",
        "/.git/config",
        "/API/now",
        "/a%C3%A9",
    ],
)
def test_odd_paths_lead_nowhere(here: str, path: str) -> None:
    answer = Asked(here, path)
    assert answer.status in (400, 404, 405), answer.body
    assert b"secret" not in answer.body


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/course?host=" + "a" * 3000, 414),
        ("/" + "a" * 3000, 414),
        ("/api/course?host=" + "a" * 300, 400),
        ("/api/course", 400),
        ("/api/course?host=a&since=0&until=1e10", 400),
        ("/api/course?host=a&since=5&until=4", 400),
        ("/api/course?host=a&since=nan", 400),
        ("/api/course?host=a&since=-1", 400),
        ("/api/course?host=a&since=1&since=2", 400),
        ("/api/course?host=a&more=1", 400),
        ("/api/now?x=1", 400),
        ("/?lang=xx", 400),
        ("/api/findings?lang=../es", 400),
        ("/api/course?host=a", 404),
    ],
)
def test_queries_are_bounded(here: str, path: str, status: int) -> None:
    assert Asked(here, path).status == status


def test_a_huge_head_or_a_body_is_refused(here: str) -> None:
    host, _, port = here.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000)
        assert line.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
        assert line.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("path", ["/", "/api/now", "/static/page.js", "/nowhere"])
def test_every_answer_is_closed_to_others(here: str, path: str) -> None:
    headers = Asked(here, path).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"


def test_a_report_runs_nothing(here: str) -> None:
    policy = Asked(here, "/reports/week.html").headers["Content-Security-Policy"]
    assert "script" not in policy.replace("sandbox", "")
    assert "sandbox" in policy
    assert "allow-scripts" not in policy


def test_bound_elsewhere_a_token_is_demanded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="token_file"):
        PageSettings(address="0.0.0.0")
    with pytest.raises(ValueError, match="token_file"):
        PageSettings(address="gpu7.example.org")
    assert PageSettings().loopback
    assert PageSettings(address="::1").loopback
    short = tmp_path / "token"
    short.write_text("short\n")
    with pytest.raises(ConfigError, match="at least 16"):
        PageSettings(address="0.0.0.0", token_file=str(short)).token()
    with pytest.raises(ConfigError, match="cannot be read"):
        PageSettings(address="0.0.0.0", token_file=str(tmp_path / "none")).token()
    short.write_text(TOKEN + "\n")
    assert PageSettings(address="0.0.0.0", token_file=str(short)).token() == TOKEN
