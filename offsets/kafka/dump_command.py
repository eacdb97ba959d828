"""`manage.py import_offsets --from-kafka-dump FILE`: read the dump, show its contents, write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.core.management.base import CommandError, OutputWrapper

from kcoord.access.rights import Principal
from kcoord.config import Config
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.core.days import DAY_MS
from offsets.kafka.dump import KafkaDump, read_kafka_dump
from offsets.kafka.importing import GroupHistory, KafkaImport, histories
from offsets.plans.table import HEADINGS, shown, table_row

TIMEOUT_SECONDS = 3_600.0
MOST_RECORDS = 5_000_000
"""About 2 GB of memory; import a larger dump a few groups at a time."""
MOST_BAD = 1_000
"""The most bad lines that are reported."""


@dataclass(frozen=True, slots=True)
class DumpImport:
    """What to import, and where to report it. `group` None: the whole dump."""

    path: Path
    group: str | None
    principal: Principal
    reason: str
    dry_run: bool
    skip_bad: bool
    config: Config
    out: OutputWrapper
    err: OutputWrapper

    def run(self) -> None:
        """Import. Raises CommandError: nothing is imported, or the groups named before it are."""
        dump = self._read()
        try:
            now = bridge.call(lambda runtime: runtime.get(KafkaImport).now())
            found = histories(dump.records, now)
            bridge.call(lambda runtime: runtime.get(KafkaImport).check(found), TIMEOUT_SECONDS)
            self._show(dump, found)
            if self.dry_run:
                self.err.write("dry run: nothing is imported")
                return
            bridge.call(lambda runtime: self._write(runtime, found), TIMEOUT_SECONDS)
        except ProtocolError as error:
            raise CommandError(f"{error.error.name}: {error.detail}") from error
        self._tell_about_age(found, now)

    def _read(self) -> KafkaDump:
        try:
            with self.path.open(encoding="utf-8") as lines:
                dump = read_kafka_dump(lines, self.group)
        except OSError as error:
            raise CommandError(f"{self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise CommandError(f"{self.path}: not UTF-8: {error.reason}") from error
        for bad in dump.bad[:MOST_BAD]:
            self.err.write(f"{self.path}:{bad.line}: {bad.problem}")
        count = "1 bad line" if len(dump.bad) == 1 else f"{len(dump.bad)} bad lines"
        if dump.bad and not self.skip_bad:
            raise CommandError(f"{self.path}: {count}; nothing is imported. Leave them out with --skip-bad-lines")
        if dump.bad:
            self.err.write(f"{self.path}: {count} left out")
        if not dump.records:
            of = "" if self.group is None else f" of the group {self.group!r}"
            raise CommandError(f"{self.path}: contains no committed offsets{of}")
        if len(dump.records) > MOST_RECORDS:
            raise CommandError(f"{self.path}: more than {MOST_RECORDS} records; import a group at a time with --group")
        return dump

    def _show(self, dump: KafkaDump, found: Mapping[str, GroupHistory]) -> None:
        self.out.write(table_row(HEADINGS))
        for name, history in found.items():
            for (topic, partition), record in sorted(history.current.items()):
                self.out.write(table_row((name, topic, str(partition), "-", shown(record.offset), "")))
        lines = sum(len(history.lines) for history in found.values())
        self.err.write(f"{len(found)} groups, {lines} lines of history")
        if dump.others:
            self.err.write(f"ignored {dump.others} records about groups and members")
        if dump.undone:
            self.err.write(f"ignored {dump.undone} records of transactions that were aborted or had not ended")
        if moved := sum(history.moved for history in found.values()):
            self.err.write(f"adjusted the time of {moved} lines to lie between that of the previous line and now")

    async def _write(self, runtime: Runtime, found: Mapping[str, GroupHistory]) -> None:
        for name, history in found.items():
            try:
                await runtime.get(KafkaImport).write(name, history, self.principal.name, self.reason)
            except ProtocolError as error:
                raise ProtocolError(error.error, f"{error.detail}; the groups named before it are imported") from error
            self.err.write(f"group {name}: imported; to undo it, delete the group")

    def _tell_about_age(self, found: Mapping[str, GroupHistory], now: int) -> None:
        days = self.config.int("offsets.journal.retention.days")
        old = sum(line.at < now - days * DAY_MS for history in found.values() for line in history.lines)
        if self.config.str("archive.path"):
            self.err.write("the next run of `manage.py archive` archives the history")
        elif old:
            self.err.write(
                f"{old} lines are older than {days} days: they are dropped from the journal unless "
                "KCOORD_ARCHIVE_PATH is set"
            )
