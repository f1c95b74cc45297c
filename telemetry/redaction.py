"""Takes secrets out of command lines before anybody keeps them."""

from __future__ import annotations

import re

MASK = "***"
MAX_INPUT = 16384
MAX_OUTPUT = 2000
"""Characters read of a command line, and kept of it."""

# One of these as a part of an option's name makes its value a secret. `tokens` and `tokenizer`
# are other words and stay.
_SECRET_PART = re.compile(
    r"apikey|auth|authorization|bearer|credentials?|dsn|pass|passphrase|passwd|password|pat|psk|pw"
    r"|pwd|secrets?|token|webhook"
)
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][\w.\-]{0,80})(?P<sep>[\"']?[=:][\"']?)(?P<value>\S+)")
_IN_TEXT = re.compile(
    r"(?P<name>[A-Za-z_][\w.\-]{0,80})(?P<sep>[\"']?\s?[=:]\s?[\"']?)(?!//)(?P<value>[^\s\"',;&}]+)"
)
_SCHEME = re.compile(r"(?:^|[:=\s\"'])(?:bearer|basic):?$", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)[^/\s@]{1,512}(?=@)")
# Forms that services give their keys, public in their documentation and in secret scanners'
# rules (https://docs.github.com/en/code-security/reference/secret-security).
_KNOWN_FORMS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_\-]{8,}|nvapi-[\w\-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}"
    r"|github_pat_\w{8,}|glpat-[\w\-]{8,}|xox[abeoprs]-[\w\-]{8,}|AIza[\w\-]{20,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{12,}|eyJ[\w\-]{8,}(?:\.[\w\-]+){0,2})"
)


def is_secret_name(name: str) -> bool:
    """Whether an option or variable of this name holds a secret."""
    parts = [part.lower() for part in _NAME_PARTS.findall(name[:128])]
    if not parts:
        return False
    return parts[-1] in {"key", "keys"} or any(_SECRET_PART.fullmatch(part) for part in parts)


def redact(command: str) -> str:
    """A command line without its secrets, of at most 2,000 characters.

    Arguments are separated by NUL, as /proc gives them, or by blanks. A secret with a blank in it
    is whole only in the first form. Never fails.
    """
    text = command[:MAX_INPUT]
    arguments = text.split("\0") if "\0" in text else text.split(" ")
    kept: list[str] = []
    secret_follows = False
    for argument in arguments:
        if not argument:
            continue
        if secret_follows and not _is_long_option(argument):
            # "Authorization: Bearer X": the secret comes one word later still.
            secret_follows = argument.rstrip(":").lower() in {"bearer", "basic"}
            kept.append(argument if secret_follows else MASK)
            continue
        kept.append(_without_secrets(argument))
        secret_follows = _announces_secret(argument)
    line = " ".join(kept)
    return line if len(line) <= MAX_OUTPUT else line[: MAX_OUTPUT - 1] + "…"


def _is_long_option(argument: str) -> bool:
    return argument.startswith("--") and len(argument) > 2 and argument[2].isalpha()


def _announces_secret(argument: str) -> bool:
    if _SCHEME.search(argument):
        return True
    if argument.startswith("-") or argument.endswith(":"):
        name = argument.lstrip("-").rstrip(":")
        return "=" not in name and is_secret_name(name)
    return False


def _without_secrets(argument: str) -> str:
    plain = argument.lstrip("-")
    dashes = argument[: len(argument) - len(plain)]
    whole = _ASSIGNMENT.fullmatch(plain)
    if whole and is_secret_name(whole["name"]):
        return f"{dashes}{whole['name']}={MASK}"
    text = _URL_PASSWORD.sub(MASK, argument)
    text = _IN_TEXT.sub(_mask_assignment, text)
    return _KNOWN_FORMS.sub(MASK, text)


def _mask_assignment(found: re.Match[str]) -> str:
    if not is_secret_name(found["name"]):
        return found[0]
    return f"{found['name']}{found['sep']}{MASK}"
