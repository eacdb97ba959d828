"""Send the mails of a table, each once: what was sent is stored in the transaction that settles the item."""

import signal
import sys
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from kcoord.client import InvalidRecordStateError, Item, ShareConsumer
from kcoord.client.sources.postgres import PostgresTable

GROUP = "mailing"
SENT = "insert into queue.sent (mail, address, attempt) values (%s, %s, %s)"
SETTLE = "select kcoord.settle(%s, %s, %s)"
LOCK_LOST = "KC121"


class TryLater(Exception):
    """The mail server is busy."""


class NoSuchAddress(Exception):
    """It is of no use to try again."""


def send(mail: Item[dict[str, Any]]) -> None:
    """In place of a mail server."""
    address = mail.value["address"]
    if "@" not in address:
        raise NoSuchAddress(address)
    if address.startswith("busy@") and mail.delivery_count == 1:
        raise TryLater("451 try again later")


database = sys.argv[1]
mails = PostgresTable(lambda: psycopg.connect(database), "queue.mail", partitions=1)

with (
    psycopg.connect(database, autocommit=True) as connection,
    ShareConsumer(
        "mail",
        group_id=GROUP,
        source=mails,
        acknowledgement_mode="explicit",
        stop_on=(signal.SIGTERM, signal.SIGINT),
    ) as worker,
):
    for mail in worker:
        try:
            send(mail)
            with connection.transaction():
                connection.execute(SENT, (mail.offset, mail.value["address"], mail.delivery_count))
                locks = Jsonb(worker.locks_for([mail]))
                connection.execute(SETTLE, (GROUP, worker.generation.member_id, locks))
        except TryLater as error:
            worker.acknowledge(mail, "release", delay=2, error=error)
        except NoSuchAddress as error:
            worker.acknowledge(mail, "reject", error=error)
        except InvalidRecordStateError:
            pass  # the lock was lost, and another worker has the mail: nothing was stored
        except psycopg.Error as error:
            if error.sqlstate != LOCK_LOST:
                raise  # the mail is released, and the process ends
