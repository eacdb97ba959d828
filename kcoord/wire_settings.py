"""The settings of the wire gateway: where Kafka clients connect, and what they may take. Part of `kcoord.config`.

Names follow Kafka's brokers where they have one (`socket.request.max.bytes`, `connections.max.idle.ms`).
"""

from __future__ import annotations

from kcoord.setting import Setting

PORT = "kafka.port"
HOST = "kafka.host"
ADVERTISED_HOST = "kafka.advertised.host"
ADVERTISED_PORT = "kafka.advertised.port"
CERTIFICATE = "kafka.tls.certificate"
KEY = "kafka.tls.key"

WIRE: tuple[Setting, ...] = (
    Setting(
        PORT, 0, "port", "Port for clients of Kafka's wire protocol; 0: none. With several nodes: + 0, 1, …", 0, 65_535
    ),
    Setting(HOST, "127.0.0.1", "address", "Address the server listens on for Kafka clients; by default loopback."),
    Setting(
        ADVERTISED_HOST,
        "",
        "address",
        "Host that Kafka clients are told to connect to; empty: that of kafka.host, or the one that a client came by "
        "if that is 0.0.0.0 or ::.",
    ),
    Setting(ADVERTISED_PORT, 0, "port", "Port that Kafka clients are told to connect to; 0: kafka.port.", 0, 65_535),
    Setting(CERTIFICATE, "", "path", "PEM file with the certificate chain for Kafka clients; empty: no TLS."),
    Setting(KEY, "", "path", "PEM file with the key of that certificate; empty: it is in the same file."),
    Setting(
        "kafka.max.connections", 10_000, "connections", "Open connections of Kafka clients; more are closed.", 1, 10**6
    ),
    Setting(
        "kafka.max.request.bytes",
        1_048_576,
        "bytes",
        "Largest request; a larger one ends the connection.",
        1_024,
        2**30,
    ),
    Setting(
        "kafka.login.timeout.ms", 10_000, "ms", "Time limit for the login of a connection, TLS included.", 100, 600_000
    ),
    Setting(
        "kafka.max.idle.ms", 600_000, "ms", "How long a connection may be open without a request.", 1_000, 86_400_000
    ),
)
