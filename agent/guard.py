"""The last word on every failure: one line on standard error, and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from agent.errors import UserError
from telemetry.store import StoreError


def guarded(work: Callable[[], int], *, debug: bool) -> int:
    """The exit code of `work`; what goes wrong in it becomes a line, with `debug` a traceback."""
    try:
        code = work()
        sys.stdout.flush()
    except UserError as error:
        return _fail(str(error), error.exit_code)
    except StoreError as error:
        return _fail(str(error), 1)
    except BrokenPipeError:
        # The reader of our output left (`| head`): no fault, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    except PermissionError as error:
        if debug:
            raise
        return _fail(f"{error.filename or error}: this user may not ({error.strerror})", 1)
    except Exception as error:  # the last resort
        if debug:
            raise
        words = " ".join(str(error).split())
        what = f"{type(error).__name__}: {words}" if words else type(error).__name__
        return _fail(f"unexpected failure ({what}); talla-agent --debug ... shows where", 1)
    return code


def _fail(message: str, code: int) -> int:
    for line in message.splitlines():  # a configuration may have several mistakes
        print(f"talla-agent: {' '.join(line.split())}", file=sys.stderr)
    return code
