"""What a server's answer means: the real InfluxDB where it can be had, staged answers elsewhere."""

import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from agent.config.settings import InfluxSettings
from agent.shipping.delivery import Accepted, Delivery, Rejected, Retry, Split, Unauthorised
from agent.shipping.influx import CREDENTIAL, Influx, read_token
from tests.require import need_program
from tests.servers.influxdb import InfluxDB, V2Front
from tests.servers.victoriametrics import VictoriaMetrics
from tests.shipping.staged_server import Answer, staged_server

LINE = b"gpu,host=n1 power_watts=1.0 1700000000000000000"


@pytest.fixture
def token_file(tmp_path: Path, influxdb_v2: V2Front) -> Path:
    file = tmp_path / "token"
    file.write_text(influxdb_v2.token + "\n")
    return file


def sent(
    settings: InfluxSettings, bucket: str = "talla", lines: list[bytes] | None = None
) -> Delivery:
    influx = Influx(settings)
    try:
        return influx.send(bucket, lines or [LINE])
    finally:
        influx.close()


# The real servers


def test_lines_are_accepted_and_there(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str, token_file: Path
) -> None:
    settings = InfluxSettings(url=influxdb_v2.url, token_file=str(token_file))
    assert sent(settings, database) == Accepted()
    assert influxdb.count("gpu", "power_watts", database) == 1


def test_a_refused_token_is_told_with_its_file(
    influxdb_v2: V2Front, database: str, tmp_path: Path
) -> None:
    stale = tmp_path / "stale"
    stale.write_text("no-longer-good")
    answer = sent(InfluxSettings(url=influxdb_v2.url, token_file=str(stale)), database)
    assert isinstance(answer, Unauthorised)
    assert str(stale) in answer.reason
    assert "token_file" in answer.reason
    assert "no-longer-good" not in answer.reason


def test_a_mended_token_is_read_again(influxdb_v2: V2Front, database: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("stale")
    influx = Influx(InfluxSettings(url=influxdb_v2.url, token_file=str(file)))
    assert isinstance(influx.send(database, [LINE]), Unauthorised)
    file.write_text(influxdb_v2.token)
    assert influx.send(database, [LINE]) == Accepted()
    influx.close()


def test_an_absent_bucket_is_named(influxdb_v2: V2Front, token_file: Path) -> None:
    answer = sent(InfluxSettings(url=influxdb_v2.url, token_file=str(token_file)), "nobody-made-it")
    assert isinstance(answer, Unauthorised)
    assert "'nobody-made-it'" in answer.reason
    assert "bucket" in answer.reason


def test_a_bad_line_is_rejected_with_the_servers_words(
    influxdb_v2: V2Front, database: str, token_file: Path
) -> None:
    settings = InfluxSettings(url=influxdb_v2.url, token_file=str(token_file))
    sent(settings, database)
    answer = sent(settings, database, [b'gpu,host=n1 power_watts="hot" 1700000010000000000'])
    assert isinstance(answer, Rejected)
    assert "field type conflict" in answer.reason


def test_victoria_metrics_takes_the_lines(victoria_metrics: VictoriaMetrics) -> None:
    line = LINE.replace(b"gpu", b"taken")
    assert sent(InfluxSettings(url=victoria_metrics.url), lines=[line]) == Accepted()
    victoria_metrics.flush()
    (series,) = victoria_metrics.export('{__name__="taken_power_watts"}')
    assert (series.times_ms, series.values) == ([1700000000000], [1.0])


# Staged answers


@pytest.mark.parametrize(
    ("answer", "delivery"),
    [
        (Answer(204), Accepted),
        (Answer(400, '{"message": "unable to parse"}'), Rejected),
        (Answer(422, '{"message": "outside retention"}'), Rejected),
        (Answer(500, '{"error": "field type conflict: is float"}'), Rejected),
        (Answer(413), Split),
        (Answer(401), Unauthorised),
        (Answer(403), Unauthorised),
        (Answer(404), Unauthorised),
        (Answer(405), Unauthorised),
        (Answer(301, headers={"Location": "http://127.0.0.1:1/elsewhere"}), Unauthorised),
        (Answer(408), Retry),
        (Answer(429), Retry),
        (Answer(500, "internal"), Retry),
        (Answer(503), Retry),
        (Answer(cut=True), Retry),
        (Answer(wait=3), Retry),
        (Answer(503, "\xff"), Retry),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Answer) else value.__name__,
)
def test_every_status_has_its_meaning(answer: Answer, delivery: type) -> None:
    with staged_server() as server:
        server.answers.append(answer)
        assert isinstance(sent(InfluxSettings(url=server.url, timeout_seconds=1.0)), delivery)
        assert server.requests == [[LINE]]


def test_a_redirect_is_not_followed_with_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    with staged_server() as server, staged_server() as elsewhere:
        server.answers.append(Answer(307, headers={"Location": elsewhere.url}))
        answer = sent(InfluxSettings(url=server.url, token_file=str(token)))
        assert elsewhere.requests == []
    assert isinstance(answer, Unauthorised)
    assert elsewhere.url in answer.reason


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("20", 20.0), ("1e9", 3600.0), ("-3", 0.0), ("soon", None), ("", None), ("nan", None)],
)
def test_retry_after_is_honoured(header: str, seconds: float | None) -> None:
    with staged_server() as server:
        server.answers.append(Answer(429, headers={"Retry-After": header}))
        answer = sent(InfluxSettings(url=server.url))
    assert isinstance(answer, Retry)
    assert answer.after == seconds


def test_retry_after_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    with staged_server() as server:
        server.answers.append(Answer(503, headers={"Retry-After": date}))
        answer = sent(InfluxSettings(url=server.url))
    assert isinstance(answer, Retry)
    assert answer.after == pytest.approx(60, abs=30)


def test_nobody_there_is_a_retry_that_names_the_address() -> None:
    with staged_server() as server:
        url = server.url
    answer = sent(InfluxSettings(url=url))
    assert isinstance(answer, Retry)
    assert url in answer.reason


# Secrets and certificates


def test_the_token_comes_from_its_file_or_the_credential(tmp_path: Path) -> None:
    (tmp_path / CREDENTIAL).write_text("from-credential\n")
    (tmp_path / "file").write_text("from-file\n")
    environment = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    named = InfluxSettings(url="http://x", token_file=str(tmp_path / "file"))
    user = InfluxSettings(url="http://x", token_file=str(tmp_path / "file"), username="me")
    assert read_token(named, environment) == "from-file"
    assert read_token(user, environment) == "me:from-file"
    assert read_token(InfluxSettings(url="http://x"), environment) == "from-credential"
    assert read_token(InfluxSettings(url="http://x"), {}) == ""


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe", b"two\nlines"])
def test_a_useless_token_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with staged_server() as server:
        answer = sent(InfluxSettings(url=server.url, token_file=str(file)))
        assert server.requests == []
    assert isinstance(answer, Unauthorised)
    assert str(file) in answer.reason


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 that nobody but itself signed, and a server's use of it."""
    openssl = need_program("openssl", "openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


def test_a_certificate_is_verified(certificate: tuple[Path, ssl.SSLContext]) -> None:
    cert, context = certificate
    with staged_server(context) as server:
        unknown = sent(InfluxSettings(url=server.url))
        assert isinstance(unknown, Unauthorised)
        assert "certificate" in unknown.reason
        assert "ca_file" in unknown.reason
        assert server.requests == []
        assert sent(InfluxSettings(url=server.url, ca_file=str(cert))) == Accepted()


def test_a_useless_ca_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    for content in (None, "no certificate"):
        if content is not None:
            file.write_text(content)
        answer = sent(InfluxSettings(url="https://127.0.0.1:1", ca_file=str(file)))
        assert isinstance(answer, Unauthorised)
        assert str(file) in answer.reason
        assert "ca_file" in answer.reason
