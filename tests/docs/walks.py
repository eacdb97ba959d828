"""How many files and functions of the project one request goes through, counted with `sys.setprofile`.

What runs at the same time for others is not counted: tasks and threads of the request have its context.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, FrameType

from tests.docs.pages import ROOT

PACKAGES = tuple(str(ROOT / package) + "/" for package in ("kcoord", "groups", "offsets"))


@dataclass
class Walk:
    """What ran for one request."""

    codes: set[CodeType] = field(default_factory=set)

    @property
    def files(self) -> set[str]:
        """Paths below the root."""
        return {code.co_filename.removeprefix(f"{ROOT}/") for code in self.codes}

    @property
    def functions(self) -> int:
        """How many functions and methods; comprehensions and lambdas count with the function around them."""
        return sum(not code.co_name.startswith("<") for code in self.codes)


_CURRENT: ContextVar[Walk | None] = ContextVar("walk", default=None)


@contextmanager
def walking() -> Iterator[Walk]:
    """Record the functions of the project that are called in this context and in copies of it."""
    walk = Walk()
    token = _CURRENT.set(walk)

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and _CURRENT.get() is walk
            and code.co_filename.startswith(PACKAGES)
            and code.co_name != "<module>"
        ):
            walk.codes.add(code)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield walk
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        _CURRENT.reset(token)
