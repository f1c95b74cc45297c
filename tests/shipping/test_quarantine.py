"""Refused lines on disk: replayable, with the reason, bounded."""

from pathlib import Path

from agent.shipping.quarantine import Quarantine

NOW = 1_700_000_000.0


def test_lines_are_kept_with_the_servers_words_and_can_be_replayed(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path / "refused", 1_000_000)
    first = quarantine.keep([(b"gpu a=1 1", "type\nconflict"), (b"gpu a=2 2", "other")], NOW)
    assert quarantine.keep([(b"gpu a=3 3", "other")], NOW + 60) == first
    text = first.read_text()
    assert text == "# type conflict\ngpu a=1 1\n# other\ngpu a=2 2\n# other\ngpu a=3 3\n"
    assert (first.stat().st_mode & 0o777, first.parent.stat().st_mode & 0o777) == (0o640, 0o750)


def test_the_oldest_go_when_it_is_full(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path / "refused", 20_000)
    for number in range(400):
        line = b"gpu a=%d %s" % (number, b"1" * 180)
        quarantine.keep([(line, "bad")], NOW + number)
    files = sorted((tmp_path / "refused").iterdir())
    assert 15_000 < sum(file.stat().st_size for file in files) <= 20_000
    assert "gpu a=399 " in files[-1].read_text()
    assert "gpu a=0 " not in "".join(file.read_text() for file in files)
