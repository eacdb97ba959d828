"""Sets of operations in Kafka's descriptions: what the rules of a caller allow on a group, a topic or the cluster.

A set has the operations of Kafka whose requests are served here and would pass the caller's rules: without a log nobody
may write, and what takes `admin` here may be one of several operations there.

Source: KIP-430; `AclOperation` and `AclEntry.supportedOperations` for the numbers and what each kind of resource has.
"""

from __future__ import annotations

from enum import IntEnum

from kcoord.access.rights import CLUSTER_NAME, Operation, Principal, Resource


class AclOperation(IntEnum):
    """Kafka's numbers of operations; each is a bit of a set."""

    READ = 3
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


_TAKES: dict[Resource, dict[AclOperation, Operation]] = {
    Resource.GROUP: {
        AclOperation.READ: Operation.READ,
        AclOperation.DELETE: Operation.DELETE,
        AclOperation.DESCRIBE: Operation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS: Operation.DESCRIBE,
        AclOperation.ALTER_CONFIGS: Operation.ADMIN,
    },
    Resource.TOPIC: {
        AclOperation.READ: Operation.READ,
        AclOperation.CREATE: Operation.ADMIN,
        AclOperation.DELETE: Operation.ADMIN,
        AclOperation.ALTER: Operation.ADMIN,
        AclOperation.DESCRIBE: Operation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS: Operation.DESCRIBE,
    },
    Resource.CLUSTER: {
        AclOperation.DESCRIBE: Operation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS: Operation.DESCRIBE,
    },
}
"""Which of this service's operations each of Kafka's takes. Settings of topics and of the server cannot be altered."""


def authorized_operations(principal: Principal, resource: Resource, name: str = CLUSTER_NAME) -> int:
    """The operations that `principal` may do with the resource called `name`, as the bits of a 32-bit number."""
    allows = principal.rules.allows
    return sum(1 << bit for bit, operation in _TAKES[resource].items() if allows(operation, resource, name))
