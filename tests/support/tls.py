"""A Postgres that is reached with TLS alone: a proxy in front of the tests' server, whose build has no TLS."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")


@dataclass
class TlsProxy:
    """Where it listens, the certificate to trust, and what came: applications over TLS, and attempts without."""

    port: int
    certificate: Path
    encrypted: list[str] = field(default_factory=list)
    plain: list[bytes] = field(default_factory=list)


@contextmanager
def tls_proxy(conninfo: str, directory: Path) -> Iterator[TlsProxy]:
    """Runs until the block is left."""
    key, certificate = make_certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    parts = conninfo_to_dict(conninfo)
    upstream = f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = TlsProxy(listener.getsockname()[1], certificate)

        def accept() -> None:
            with contextlib.suppress(OSError):  # the listener was closed
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=serve, args=(proxy, client, context, upstream), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """A key and a certificate for localhost that signs itself."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl on the path, which makes the test's certificate")
    key, certificate = directory / "server key.pem", directory / "server certificate.pem"
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    made = (program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names)
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True, timeout=60)
    return key, certificate


def serve(proxy: TlsProxy, client: socket.socket, context: ssl.SSLContext, upstream: str) -> None:
    """One connection. Without a request for TLS it is noted and closed."""
    with contextlib.suppress(OSError), client:
        first = client.recv(8, socket.MSG_WAITALL)
        if first != SSL_REQUEST:
            proxy.plain.append(first)
            return
        client.sendall(b"S")
        with context.wrap_socket(client, server_side=True) as wrapped, socket.socket(socket.AF_UNIX) as server:
            server.connect(upstream)
            startup = wrapped.recv(4096)
            words = startup[8:].split(b"\0")
            named = dict(zip(words[::2], words[1::2], strict=False))
            proxy.encrypted.append(named.get(b"application_name", b"").decode())
            server.sendall(startup)
            threading.Thread(target=copy, args=(server, wrapped), daemon=True).start()
            copy(wrapped, server)


def copy(source: socket.socket, target: socket.socket) -> None:
    """Until one side closes."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
