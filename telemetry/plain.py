"""Names that others chose, as a terminal may show them."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text with what a terminal would obey (escapes, bells, line ends) made visible.

    A process, a mount or a model may be called anything.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
