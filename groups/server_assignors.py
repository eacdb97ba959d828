"""The assignors that the coordinator offers, by name, the default first: built-in ones and custom classes.

Source: consumer.md 5.2 and 10 (`group.consumer.assignors`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.utils.module_loading import import_string

from groups.core.assignors import BUILT_IN, Assignor
from kcoord.config import Config
from kcoord.setting_table import BY_NAME

SETTING = "group.consumer.assignors"


class AssignorLoadError(Exception):
    """The setting names something that is not an assignor. The text says what and how to fix it."""


def load_assignors(config: Config) -> Mapping[str, Assignor]:
    """The configured assignors by the name that members request, in the order of the setting.

    An entry is the name of a built-in assignor or the dotted path of a class without parameters that is an
    `groups.core.assignors.Assignor`. Raises AssignorLoadError.
    """
    found: dict[str, Assignor] = {}
    for entry in config.names(SETTING):
        assignor = BUILT_IN[entry] if entry in BUILT_IN else _load(entry)
        if assignor.name in found:
            raise _refused(entry, f"two assignors are named {assignor.name!r}; remove one")
        found[assignor.name] = assignor
    return MappingProxyType(found)


def _load(path: str) -> Assignor:
    if "." not in path:
        raise _refused(path, f"no such assignor; use {', '.join(BUILT_IN)} or the dotted path of a class")
    try:
        assignor = import_string(path)()
    except Exception as error:
        raise _refused(path, f"cannot be imported: {error!r}") from error
    name = getattr(assignor, "name", None)
    if not isinstance(name, str) or not name or not callable(getattr(assignor, "assign", None)):
        raise _refused(path, "not an assignor: the class must have a `name` and a method `assign`")
    loaded: Assignor = assignor
    return loaded


def _refused(entry: str, reason: str) -> AssignorLoadError:
    return AssignorLoadError(f"{BY_NAME[SETTING].env}, {entry!r}: {reason}")
