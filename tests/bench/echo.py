"""The yardstick of requests over HTTP: Starlette returns the body it was sent, on uvicorn with httptools and uvloop.

`python -m tests.bench.echo FD`: serves on the socket with this file descriptor.
"""

from __future__ import annotations

import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def echo(request: Request) -> Response:
    """The body, as JSON."""
    return Response(await request.body(), media_type="application/json")


def main() -> None:
    """Serve until a signal."""
    calls = ("heartbeat", "consumer-heartbeat", "offsets/commit", "offsets/fetch")
    application = Starlette(routes=[Route(f"/v1/groups/{{group_id}}/{call}", echo, methods=["POST"]) for call in calls])
    config = uvicorn.Config(application, http="httptools", loop="uvloop", access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])


if __name__ == "__main__":
    main()
