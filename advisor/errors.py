"""Failures that a person sees as one line, each with the exit code of the command."""

from __future__ import annotations


class AdvisorError(Exception):
    """The command cannot do what was asked; the message is one line and names the remedy."""

    exit_code = 1


class UsageError(AdvisorError):
    """The command line asks for something that does not go together."""

    exit_code = 2


class ConfigError(AdvisorError):
    """The configuration is wrong; the message names the file, the key and what is expected."""

    exit_code = 78


class ConfigUnreadable(ConfigError):
    """The configuration is there, and this user may not read it."""
