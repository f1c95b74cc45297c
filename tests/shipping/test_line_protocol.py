"""Lines that any server reads: texts from hostile machines, numbers that are none, types."""

import math
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.config.settings import InfluxSettings
from agent.shipping.delivery import Accepted
from agent.shipping.influx import Influx
from agent.shipping.line_protocol import event_line, inventory_line, window_lines
from telemetry.event import Event
from telemetry.window import Key, Row, Window
from tests.servers.influxdb import InfluxDB, V2Front

START = 1_700_000_100
GPU: Key = ("gpu", "GPU-1")

HOSTILE = [
    "plain",
    "with space, comma and = sign",
    'quote " in it',
    "back\\slash",
    "ends in backslash\\",
    "ends in two\\\\",
    '\\"',
    "line\nbreak\r\nand\ttab",
    "nul\0byte",
    "odd \udcff byte",
    "ñandú 模型 🙂",
    " blanks around ",
    "gpu,host=x power_watts=1 1",
    "# comment",
    "x" * 70_000,
    "",
]

texts = st.text() | st.sampled_from(HOSTILE)


def window(rows: dict[Key, Row], host: str = "n1") -> Window:
    return Window(host, 10, START, 10, rows)


@given(host=texts, mount=texts, source=texts)
def test_a_row_is_one_line_whatever_the_texts_are(host: str, mount: str, source: str) -> None:
    row = Row({"used_bytes": 1.0}, {"source": source})
    (line,) = window_lines(window({("mount", mount): row}, host))
    assert b"\n" not in line
    assert b"\r" not in line
    line.decode("utf-8")
    # Two spaces that are neither escaped nor quoted part the line; nothing else may end a part.
    parts = re.fullmatch(rb'((?:\\.|[^ \\])+) ((?:"(?:[^"\\]|\\.)*"|[^" ])+) (\d+)', line)
    assert parts is not None
    assert parts[1].startswith(b"mount")
    assert len(re.findall(rb'"(?:[^"\\]|\\.)*"', parts[2])) == 1
    assert parts[3] == b"%d" % (START * 10**9)


@given(st.floats())
def test_what_is_no_number_is_absent(value: float) -> None:
    (line,) = window_lines(window({GPU: Row({"power_watts": value, "covered_seconds": 10.0})}))
    said = re.search(rb"power_watts=([^, ]+)", line)
    if math.isfinite(value):
        assert said is not None
        assert float(said[1]) == value
    else:
        assert said is None


def test_every_text_comes_back_from_the_server_as_it_was_said(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str, tmp_path: Path
) -> None:
    sent: list[bytes] = []
    for number, text in enumerate(HOSTILE):
        row = Row({"memory_bytes": float(number)}, {"command": text})
        sent += window_lines(window({("gpu_process", "GPU-1", f"{number}{text}"[:900]): row}))
    sent += [event_line(Event(START, "n1", "alert", HOSTILE[7], sequence=7))]
    sent += [inventory_line(START, "n1", {"host": "n1", "purpose": HOSTILE[2]})]
    token = tmp_path / "token"
    token.write_text(influxdb_v2.token)
    influx = Influx(InfluxSettings(url=influxdb_v2.url, token_file=str(token)))
    assert influx.send(database, sent) == Accepted()
    influx.close()
    found = influxdb.query('SELECT "memory_bytes", "command", "slot" FROM "gpu_process"', database)
    back = {int(str(r["memory_bytes"])): r for s in found for r in s.records()}
    assert set(back) == set(range(len(HOSTILE)))
    for number, text in enumerate(HOSTILE):
        said = back[number].get("command", "")
        assert said == _expected(text)[:32_000]
        if len(text) < 100:
            assert back[number]["slot"] == f"{number}{_expected(text)}".strip().rstrip("\\")


def _expected(text: str) -> str:
    """Control characters are blanks, and a byte that is no UTF-8 is seen."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return re.sub(r"[\x00-\x1f]", " ", text)


def test_events_of_one_instant_keep_a_point_each() -> None:
    event = Event(START + 0.5, "n1", "xid", "79", gpu_uuid="GPU-1", sequence=1)
    again = Event(START + 0.5, "n1", "xid", "79", gpu_uuid="GPU-1", sequence=2)
    times = [int(event_line(e).rsplit(b" ", 1)[1]) for e in (event, again)]
    assert times == [START * 10**9 + 500_000_001, START * 10**9 + 500_000_002]


def test_an_inventory_beyond_the_servers_limit_is_no_half_json() -> None:
    line = inventory_line(START, "n1", {"host": "n1", "purpose": "x" * 70_000})
    assert b"too long" in line
    assert len(line) < 64_000


def test_a_gpu_that_answers_errors_has_a_line_that_says_so() -> None:
    (line,) = window_lines(window({GPU: Row({"covered_seconds": 0.0}, {"error": "GPU is lost"})}))
    assert line == (
        b"gpu,gpu_uuid=GPU-1,host=n1,window=10s "
        b'window_seconds=10.0,covered_seconds=0.0,error="GPU is lost" 1700000100000000000'
    )


def test_counts_are_integers_and_the_model_is_a_tag() -> None:
    row = Row(
        {"utilization_ratio": 0.0, "utilization_ratio_count": 10.0, "process_count": 2.0},
        {"gpu_model": "NVIDIA H100 80GB HBM3", "memory_api": "v2"},
    )
    (line,) = window_lines(window({GPU: row}), {GPU: {"state": "idle_held"}})
    assert line == (
        rb"gpu,gpu_model=NVIDIA\ H100\ 80GB\ HBM3,gpu_uuid=GPU-1,host=n1,window=10s "
        b"window_seconds=10.0,utilization_ratio=0.0,utilization_ratio_count=10i,process_count=2i,"
        b'memory_api="v2",state="idle_held" 1700000100000000000'
    )
