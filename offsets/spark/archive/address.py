"""Where an archive is: KCOORD_ARCHIVE_PATH as it is recorded, and what its readers and writers are told of a store.

On S3 these are the variables of the AWS tools, in the forms that the `deltalake` wheel and Spark take. pyarrow reads
them itself. Spark's driver sends the credentials among them to its executors.
Source: docs/archive.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent.parent.parent
"""Paths are relative to the checkout, like those of the data directory."""


def resolved(address: str) -> str:
    """An absolute path, or a URI without a slash at its end."""
    return address.rstrip("/") if "://" in address else str((BASE / address).resolve())


ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def endpoint(environ: Mapping[str, str]) -> str:
    """The address of a store other than Amazon's; empty: Amazon's."""
    return _first(environ, ENDPOINTS)


def delta_options(address: str, environ: Mapping[str, str]) -> dict[str, str] | None:
    """The storage options of `deltalake` for an archive at `address`; None unless it is on S3."""
    if not address.startswith(("s3a://", "s3://")):
        return None
    found: dict[str, str] = {}
    if at := endpoint(environ):
        found |= {"AWS_ENDPOINT_URL": at, "AWS_ALLOW_HTTP": str(at.startswith("http://")).lower()}
    if region := _first(environ, REGIONS):
        found["AWS_REGION"] = region
    return found


def spark_options(environ: Mapping[str, str]) -> dict[str, str]:
    """The same for Spark's `s3a://`. Credentials are not among it: Spark takes them from the variables."""
    found: dict[str, str] = {}
    if at := endpoint(environ):
        found |= {
            "spark.hadoop.fs.s3a.endpoint": at,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(not at.startswith("http://")).lower(),
        }
    if region := _first(environ, REGIONS):
        found["spark.hadoop.fs.s3a.endpoint.region"] = region
    return found


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")
