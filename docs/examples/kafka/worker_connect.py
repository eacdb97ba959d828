"""Workers in the style of Kafka Connect, with kafka-python: one leads, and shares out tasks among all.

    KCOORD_TOKEN=… python worker_connect.py NAME TASKS

The file TASKS has a task in each line. Workers join with a protocol type of their own and tell their names in the
metadata; the leader of each generation reads the names and sends every worker its tasks, with the name of the leader.
No topic is needed. KCOORD_KAFKA says where the service listens for Kafka clients.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from kafka import KafkaConsumer
from kafka.coordinator.base import BaseCoordinator

PROTOCOL_TYPE, PROTOCOL = "connect", "shared-out"
running = True


def stop(*_):
    global running
    running = False


class Coordinator(BaseCoordinator):
    """Membership in the group. What it says and what it is told is JSON; to the service both are bytes."""

    def __init__(self, client, name, tasks, **configs):
        super().__init__(client, **configs)
        self.name, self.tasks = name, tasks

    def protocol_type(self):
        return PROTOCOL_TYPE

    def group_protocols(self):
        return [(PROTOCOL, json.dumps({"name": self.name}).encode())]

    def _perform_assignment(self, leader_id, protocol, members):
        """Only the leader is asked: every worker gets each nth task, in the order of their names."""
        names = {member.member_id: json.loads(member.metadata)["name"] for member in members}
        ids = sorted(names, key=names.get)
        tasks = self.tasks.read_text().split()
        shares = {member_id: tasks[place :: len(ids)] for place, member_id in enumerate(ids)}
        return {
            member_id: json.dumps({"leader": names[leader_id], "tasks": share}).encode()
            for member_id, share in shares.items()
        }

    async def _on_join_complete_async(self, generation, member_id, protocol, assignment):
        """Begin with the tasks of a generation. Return soon: heartbeats wait for it."""
        print(json.dumps({"generation": generation, **json.loads(assignment)}), flush=True)

    async def _on_join_prepare_async(self, generation, member_id, timeout_ms=None):
        """End the tasks of the generation before; others may be given them now."""


def main(name, tasks):
    # It only brings the connection: a consumer without a group joins nothing.
    consumer = KafkaConsumer(
        bootstrap_servers=os.environ.get("KCOORD_KAFKA", "127.0.0.1:9092"),
        group_id=None,
        client_id=name,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="worker",
        sasl_plain_password=os.environ["KCOORD_TOKEN"],
    )
    coordinator = Coordinator(
        consumer._client,
        name,
        tasks,
        api_version=consumer.config["api_version"],
        group_id=os.environ.get("KCOORD_GROUP", "connect-example"),
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
    )
    while running:
        coordinator.ensure_active_group(timeout_ms=500)  # joins again when the group changes
        coordinator.poll_heartbeat()  # tells the thread that sends heartbeats that this one lives
        time.sleep(0.1)
    coordinator.close(timeout_ms=5_000)
    consumer.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main(sys.argv[1], Path(sys.argv[2]))
