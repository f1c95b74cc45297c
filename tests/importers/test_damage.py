"""Damaged logs: nothing is made up, nothing becomes a zero, nobody sees a traceback."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.cli import main
from telemetry.window import Window
from tests.importers.golden import windows_of

_MIB = 1 << 20
_UNITS = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n" + "".join(
    f"2025/07/26 23:53:{n:02d}.945, {gpu}, 57 %, 31245 MiB, 312.45 W\n"
    for n in range(10)
    for gpu in (0, 1)
)
_BARE = _UNITS.replace(" [%]", "").replace(" [MiB]", "").replace(" [W]", "")
_BARE = _BARE.replace(" %", "").replace(" MiB", "").replace(" W", "")
_TRUE = {
    "utilization_ratio": 0.57,
    "utilization_ratio_max": 0.57,
    "utilization_ratio_zero_ratio": 0.0,
    "memory_used_bytes_min": 31245 * _MIB,
    "memory_used_bytes_max": 31245 * _MIB,
    "power_watts_min": 312.4,  # the store keeps tenths
    "power_watts_max": 312.4,
}


def _import(content: bytes) -> tuple[int, str, list[Window]]:
    with tempfile.TemporaryDirectory() as folder:
        log, store = Path(folder) / "smi.csv", Path(folder) / "s.db"
        log.write_bytes(content)
        error = io.StringIO()
        with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
            code = main(["--debug", "import", str(log), "--host", "h", "--store", str(store)])
        return code, error.getvalue(), windows_of(store)


def _assert_true(windows: list[Window]) -> None:
    for window in windows:
        for key, row in window.rows.items():
            assert key in (("gpu", "imported:h:0"), ("gpu", "imported:h:1"))
            for name, value in _TRUE.items():
                if name in row.values:
                    assert abs(row.values[name] - value) <= 1e-3 * value, (key, name)


@given(st.sampled_from([_UNITS, _BARE]), st.integers(0, len(_UNITS)))
@settings(max_examples=60, deadline=None)
def test_a_log_cut_anywhere_holds_only_what_was_in_it(text: str, cut: int) -> None:
    code, error, windows = _import(text[:cut].encode())
    assert code in (0, 1)
    assert len(error.splitlines()) == code
    _assert_true(windows)


_LINES = _UNITS.splitlines(keepends=True)
_JUNK = st.one_of(
    st.sampled_from(
        [
            "\n",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
            "Unable to determine the device handle for GPU0000:17:00.0: Unknown Error\n",
            _LINES[0],
            _LINES[5][:30] + "\n",
            _LINES[5][20:],
            "2025/07/26 23:53:05.945, 0, [N/A], [Unknown Error], [GPU is lost]\n",
            "2025/13/45 23:53:05.945, 0, 57 %, 31245 MiB, 312.45 W\n",
            "2025/07/26 23:53:05.945, x, 57 %, 31245 MiB, 312.45 W\n",
            "2025/07/26 23:53:05.945, 0, -1 %, 1 parsec, nan W\n",
            '"unclosed, quote\n',
            "process_memory_bytes\n",
            "index\n",
            'stray " mark\n',
            "\0\0\0\0\n",
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters=',0123456789"'), max_size=40),
)


@given(st.lists(st.tuples(st.integers(1, len(_LINES)), _JUNK), max_size=6))
@settings(max_examples=60, deadline=None)
def test_lines_that_are_no_rows_change_nothing(junk: list[tuple[int, str]]) -> None:
    lines = list(_LINES)
    for place, text in junk:
        lines.insert(place, text if text.endswith("\n") else text + "\n")
    code, error, windows = _import("".join(lines).encode())
    assert code == 0, error
    assert error == ""
    _assert_true(windows)


@given(st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_bytes_that_are_no_log_are_one_line(content: bytes) -> None:
    code, error, windows = _import(content)
    assert code == 1
    assert len(error.splitlines()) == 1
    assert windows == []
