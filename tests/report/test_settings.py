"""Whose settings a command goes by where the service's are not for this user."""

import argparse
from pathlib import Path

import pytest

from advisor import config
from advisor.commands import reading
from advisor.config import Settings
from advisor.errors import ConfigUnreadable


@pytest.fixture
def unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The service's configuration, of another user: root, as which tests may run, reads all."""
    path = tmp_path / "advisor.toml"
    path.write_text('language = "es"\n')

    def refused(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(config, "DEFAULT_PATH", path)
    monkeypatch.setattr(Path, "read_text", refused)
    return path


def asked(config: Path | None, *store: str) -> argparse.Namespace:
    return argparse.Namespace(config=config, store=[Path(name) for name in store])


def test_a_store_of_ones_own_is_judged_by_the_defaults(
    unreadable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reading.settings_of(asked(None, "own.db")) == Settings()
    assert "may not be read by this user: the defaults are taken" in capsys.readouterr().err


def test_the_services_stores_and_a_named_file_are_not_guessed(unreadable: Path) -> None:
    for named in (asked(None), asked(unreadable, "own.db")):
        with pytest.raises(ConfigUnreadable, match="sudo -u talla-advisor"):
            reading.settings_of(named)
