"""The values of settings in effect, read from the environment (`kcoord.setting_table`), and of constants
(`kcoord.constants`).

The environment variable of a setting is `KCOORD_` + its name in capitals with `_` for `.`. System checks
(`kcoord.E001`) refuse values that break the table, and nothing else reads the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kcoord import identity_settings
from kcoord.constants import CONSTANTS
from kcoord.setting import PREFIX, Switch, Text, Value
from kcoord.setting_table import (
    ARCHIVE_PATH,
    HEARTBEAT_INTERVAL,
    NOT_LARGER,
    REBALANCE_PROTOCOLS,
    ROUTING,
    SESSION_TIMEOUT,
    SETTINGS,
)

BASE_DIR = Path(__file__).resolve().parent.parent
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - what to ask instead
"""Hosts that mean every address of the machine, and how this machine itself reaches a server that listens there."""


def _nearest(key: str, known: Iterable[str]) -> str:
    """`did you mean …? ` for a variable that is spelled nearly like a known one, else nothing."""
    from difflib import get_close_matches

    names = [name.removeprefix(PREFIX) for name in known]
    found = get_close_matches(key.removeprefix(PREFIX), names, n=1, cutoff=0.7)
    return f"did you mean {PREFIX}{found[0]}? " if found else ""


class Config:
    """The values in effect. `problems` holds one sentence for each value that could not be used."""

    def __init__(self, values: Mapping[str, Value], problems: tuple[str, ...] = ()) -> None:
        self._values: dict[str, Value] = {
            **{constant.name: constant.value for constant in CONSTANTS},
            **{setting.name: setting.default for setting in SETTINGS},
        }
        unknown = set(values) - set(self._values)
        if unknown:
            raise KeyError(f"no such setting: {', '.join(sorted(unknown))}")
        self._values |= values
        self.problems = problems

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Config:
        """Read the environment. An invalid value keeps its default and is listed in `problems`.

        The files of the embedded Postgres are kept in the data directory, and so is the archive unless set elsewhere.
        """
        values: dict[str, Value] = {}
        problems: list[str] = []
        known = {setting.env: setting for setting in SETTINGS}
        constants = {constant.env: constant for constant in CONSTANTS}
        for key, text in environ.items():
            if not key.startswith(PREFIX) or key in NOT_SETTINGS:
                continue
            setting = known.get(key)
            if constant := constants.get(key):
                problems.append(
                    f"{key}: no longer a setting, remove it; always {str(constant.value).lower()}: {constant.why}"
                )
                continue
            if setting is None:
                hint = MOVED.get(key) or f"{_nearest(key, known)}`manage.py settings_reference` lists them"
                problems.append(f"{key}: no such setting; {hint}")
                continue
            try:
                values[setting.name] = setting.parse(text)
            except ValueError as error:
                problems.append(str(error))
        config = cls(values, tuple(problems))
        if ARCHIVE_PATH not in values and not config.str("database.url"):
            config = config.override({ARCHIVE_PATH: str(config.data_dir / "archive")})
        config.problems += tuple(config._contradictions())
        return config

    @property
    def data_dir(self) -> Path:
        """The data directory; a relative one is resolved from the project's directory."""
        return (BASE_DIR / self.str("data.dir")).resolve()

    @property
    def only_owners(self) -> Switch:
        """Only the owner of its coordinator partition answers for a group (`coordinator.routing`)."""
        return self.str(ROUTING) == "owner"

    def replace(self, **values: Value) -> Config:
        """A copy with other values; names use `_` for `.`."""
        return self.override({name.replace("_", "."): value for name, value in values.items()})

    def override(self, values: Mapping[str, Value]) -> Config:
        """A copy with other values, by their full names. Raises KeyError for an unknown name."""
        return Config({**self._values, **values}, self.problems)

    def _contradictions(self) -> list[str]:
        found = [f"{small} is larger than {large}" for small, large in NOT_LARGER if self.int(small) > self.int(large)]
        if self.int(HEARTBEAT_INTERVAL) >= self.int(SESSION_TIMEOUT):
            found.append(f"{HEARTBEAT_INTERVAL} must be smaller than {SESSION_TIMEOUT}")
        if self.only_owners and self.str("host") in ANY_ADDRESS and not self.str("advertised.url"):
            found.append(f"advertised.url is needed for {ROUTING}=owner: {self.str('host')} is not an address to go to")
        if "classic" not in self.names(REBALANCE_PROTOCOLS):
            found.append(f"{REBALANCE_PROTOCOLS} must include classic")
        found.extend(identity_settings.problems(self.str))
        return found

    def int(self, name: Text) -> int:
        """The value of a number setting."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def str(self, name: Text) -> Text:
        """The value of a text setting."""
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def names(self, name: Text) -> tuple[Text, ...]:
        """The value of a list setting."""
        return tuple(self.str(name).split(","))

    def bool(self, name: Text) -> Switch:
        """The value of a switch."""
        value = self._values[name]
        assert isinstance(value, bool)
        return value


MOVED = {
    f"{PREFIX}QUOTA_{budget}": f"set `{budget.lower()}` with `manage.py quotas --alter --entity-default` instead"
    for budget in (
        *("HEARTBEATS", "COMMITS", "READS", "WRITES", "BYTES"),
        *("CPU", "MEMBERS", "GROUPS", "PARTITIONS", "CONNECTIONS"),
    )
}
"""What earlier releases read from the environment and is stored now: what to do instead."""
NOT_SETTINGS = frozenset({"KCOORD_CONFORMANCE_DIR", "KCOORD_TOKEN", "KCOORD_URL"})
"""Variables with the same prefix that the client, the demo and the tests read; not settings of the service."""
