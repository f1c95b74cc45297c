"""An absent part skips on a laptop and fails where it is promised."""

import pytest

from tests.require import VARIABLE, need, need_program


@pytest.mark.parametrize("promised", ["", "gcc", "gcc, nginx", "influxdb-enterprise"])
def test_absent_and_not_promised_skips(monkeypatch: pytest.MonkeyPatch, promised: str) -> None:
    monkeypatch.setenv(VARIABLE, promised)
    with pytest.raises(pytest.skip.Exception, match="influxdb is not here: install it"):
        need(False, "influxdb", "install it")


@pytest.mark.parametrize("promised", ["all", "influxdb", "gcc, influxdb"])
def test_absent_and_promised_fails(monkeypatch: pytest.MonkeyPatch, promised: str) -> None:
    monkeypatch.setenv(VARIABLE, promised)
    with pytest.raises(pytest.fail.Exception, match="influxdb is not here: install it"):
        need(None, "influxdb", "install it")


def test_present_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "all")
    need(True, "influxdb", "install it")
    assert need_program("sh", "dash").name == "sh"


def test_an_absent_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"apt-get install .* no-such-package"):
        need_program("no-such-program", "no-such-package")
