"""The lines that stand against faults, and their tests, are where mutations.toml says.

`make verify-survival` takes each line away and demands that its test fails.
"""

from pathlib import Path

import pytest

from tests.survival.mutation import ROOT, Mutation, mutations


@pytest.mark.parametrize("mutation", mutations(), ids=lambda mutation: mutation.fault)
def test_the_line_is_there_once_and_has_its_test(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text("utf-8").count(mutation.line) == 1
    file, _, test = mutation.test.partition("::")
    assert f"def {test}(" in (ROOT / file).read_text("utf-8")


def test_a_line_that_is_not_there_is_no_silent_success(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    with pytest.raises(ValueError, match="is there 2 times"):
        Mutation("a fault", "a.py", "x = 1", "t.py::test").apply(tmp_path)
