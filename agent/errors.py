"""Errors whose message is meant for the person at the terminal, one line each."""

from __future__ import annotations


class UserError(Exception):
    """Something that the user can mend; printed as it is. Exit code 1 unless it says another."""

    exit_code = 1


class ConfigError(UserError):
    """The configuration is wrong; file and key are named."""

    exit_code = 78  # EX_CONFIG of sysexits(3)
