"""How many files and functions of the project one request goes through, counted with `sys.setprofile`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType

from tests.docs.pages import ROOT

PACKAGES = tuple(str(ROOT / package) + "/" for package in ("kcoord", "groups", "offsets"))


@dataclass
class Walk:
    """What ran meanwhile."""

    codes: set[CodeType] = field(default_factory=set)

    @property
    def files(self) -> set[str]:
        """Paths below the root."""
        return {code.co_filename.removeprefix(f"{ROOT}/") for code in self.codes}

    @property
    def functions(self) -> int:
        """How many functions and methods; comprehensions and lambdas count with the function around them."""
        return sum(not code.co_name.startswith("<") for code in self.codes)


@contextmanager
def walking() -> Iterator[Walk]:
    """Record the functions of the project that are called, in this thread and in those that begin meanwhile."""
    walk = Walk()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGES) and code.co_name != "<module>":
            walk.codes.add(code)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield walk
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
