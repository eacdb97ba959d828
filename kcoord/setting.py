"""One setting: its name, its bounds, and how the text of its environment variable is read."""

from __future__ import annotations

from dataclasses import dataclass

Value = int | str | bool
Text = str
Switch = bool

PREFIX = "KCOORD_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Numbers are checked against `minimum` and `maximum` (both inclusive), texts against `choices`, case-sensitively
    unless `any_case`. A `listed` text is a comma-separated list of names, each one of the choices.
    """

    name: str
    default: Value
    unit: str
    help: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False
    any_case: bool = False
    listed: bool = False

    @property
    def env(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper().replace(".", "_")

    def parse(self, text: str) -> Value:
        """The value written as `text`. Raises ValueError saying what is expected."""
        value: Value
        if isinstance(self.default, bool):
            if text.lower() not in ("true", "false"):
                raise ValueError(f"{self.env}={text!r}: expected true or false")
            return text.lower() == "true"
        if isinstance(self.default, int):
            try:
                value = int(text)
            except ValueError:
                raise ValueError(f"{self.env}={text!r}: expected a whole number ({self.unit})") from None
            self._check_bounds(value)
            return value
        if self.listed:
            return self._parse_list(text)
        if self.any_case:
            text = text.lower()
        if self.choices and text not in self.choices:
            raise ValueError(f"{self.env}={text!r}: expected one of {', '.join(self.choices)}")
        return text

    def _parse_list(self, text: str) -> str:
        names = [name.strip() for name in text.split(",")]
        if not all(names) or len(set(names)) != len(names):
            raise ValueError(f"{self.env}={text!r}: expected {self.unit} separated by commas, each only once")
        if self.choices and not set(names) <= set(self.choices):
            raise ValueError(f"{self.env}={text!r}: expected one or more of {', '.join(self.choices)}")
        return ",".join(names)

    def _check_bounds(self, value: int) -> None:
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"{self.env}={value}: must be at least {self.minimum} ({self.unit})")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{self.env}={value}: must be at most {self.maximum} ({self.unit})")
