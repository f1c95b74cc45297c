"""Files of the host: odd bytes, long files, files that come and go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.collector import Counters
from agent.host.hostfs import HostFs, number_after, unescape


def test_bytes_that_are_no_utf8_are_shown(tmp_path: Path) -> None:
    (tmp_path / "comm").write_bytes(b"GPU\xf8\n")
    assert HostFs(tmp_path).text("/comm") == "GPU\\xf8"


def test_a_long_file_is_read_whole_and_a_limit_is_kept(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 300_000)
    hostfs = HostFs(tmp_path)
    assert len(hostfs.bytes("/long")) == 300_000
    assert len(hostfs.bytes("/long", limit=100)) == 100


def test_a_file_of_many_pages_of_the_kernel_is_read_whole() -> None:
    host = HostFs()
    symbols = host.bytes("/proc/kallsyms", limit=1 << 20)
    assert len(symbols) > 8192  # the kernel gives about a page at a time
    kept = host.kept("/proc/kallsyms")
    assert kept.read(limit=1 << 20) == symbols == kept.read(limit=1 << 20)


def test_a_kept_file_is_read_anew_each_time() -> None:
    kept = HostFs().kept("/proc/self/stat")
    first = kept.read().split()
    sum(i * i for i in range(3_000_000))
    second = kept.read().split()
    assert first[0] == second[0]
    assert int(second[13]) + int(second[14]) > int(first[13]) + int(first[14])


def test_a_kept_file_comes_back(tmp_path: Path) -> None:
    kept = HostFs(tmp_path).kept("/stat")
    with pytest.raises(FileNotFoundError) as failure:
        kept.read()
    assert failure.value.filename == str(tmp_path / "stat")
    (tmp_path / "stat").write_text("1")
    assert kept.read() == b"1"
    before = len(os.listdir("/proc/self/fd"))
    kept.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1
    assert kept.read() == b"1"


def test_reading_a_pipe_nobody_writes_to_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError):
        HostFs(tmp_path).bytes("/pipe")


@given(st.text())
def test_a_path_survives_the_kernels_escapes(path: str) -> None:
    escaped = path.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")
    assert unescape(escaped.replace("\n", "\\012")) == path


@pytest.mark.parametrize(
    ("data", "number"),
    [(b"a 1\nb 22 kB\n", 22), (b"a 1\nb 22", 22), (b"b\n", None), (b"b x\n", None), (b"", None)],
)
def test_number_after(data: bytes, number: int | None) -> None:
    assert number_after(b"\n" + data, b"\nb") == number


@given(
    st.lists(
        st.tuples(st.integers(0, 2**64), st.floats(0.1, 10, allow_nan=False)),
        min_size=2,
        max_size=30,
    )
)
def test_a_counter_never_grows_by_less_than_nothing(readings: list[tuple[int, float]]) -> None:
    counters, now, before = Counters(), 100.0, None
    for value, step in readings:
        now += step
        grown = counters.advance((value,), now)
        if before is None:
            assert grown is None
        else:
            assert grown is not None
            elapsed, (growth,) = grown
            assert elapsed == pytest.approx(step)
            assert growth == (value - before if value >= before else None)
        before = value
