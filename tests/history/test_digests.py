"""A day that was kept comes back as it was, or not at all."""

from __future__ import annotations

import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.digests import DayDigests
from advisor.state import State
from telemetry.window import Frame

DAY = 1_700_006_400
CELLS = st.none() | st.floats(allow_nan=False)


@st.composite
def any_frame(draw: st.DrawFn) -> Frame:
    length = draw(st.integers(0, 5))
    column = st.lists(CELLS, min_size=length, max_size=length)
    said = draw(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=3)), min_size=1))
    return Frame(
        ("gpu", draw(st.text(max_size=5))),
        [DAY + 300 * i for i in range(length)],
        draw(st.lists(st.integers(1, 300), min_size=length, max_size=length)),
        draw(st.dictionaries(st.text(max_size=4), column, max_size=3)),
        [draw(st.sampled_from(said)) for _ in range(length)],
    )


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(any_frame(), max_size=3))
def test_what_is_kept_comes_back(tmp_path: Path, frames: list[Frame]) -> None:
    with State(tmp_path / "advisor.db") as state, DayDigests(state) as digests:
        digests.put("here", DAY, 7, frames)
        digests.flush()
        assert digests.get("here", DAY, 7) == frames
        assert digests.get("here", DAY, 8) is None, "another number of points"
        assert digests.get("there", DAY, 7) is None
        digests.forget(time.time() + 1)
        assert digests.get("here", DAY, 7) is None


def test_a_digest_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    with State(tmp_path / "advisor.db") as state, DayDigests(state) as digests:
        digests.put("here", DAY, 1, [Frame(("host",), [DAY], [300], {"a": [1.0]}, [{}])])
        digests.flush()
        with state.transaction() as db:
            db.execute("UPDATE digest SET content = substr(content, 1, 9)")
        assert digests.get("here", DAY, 1) is None
        assert digests.forget(time.time() - 60) == 0
        assert digests.forget(time.time() + 60) == 1
