"""What a connection begins with: ApiVersions (the API: `groups.api.kafka.brokers`), SaslHandshake, SaslAuthenticate.

SASL/PLAIN with an API token as password; the user name is not looked at. A connection that has not logged in gets no
other answer.

Source: KIP-511 (client software), KIP-1242 (node), KIP-152 (SaslAuthenticate), RFC 4616 (PLAIN).
"""

from __future__ import annotations

import re

from kcoord.access.quotas.connections import Connections
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.rights import Access, digest
from kcoord.door.kafka.api import (
    ILLEGAL_SASL_STATE,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
    Answer,
    Api,
    Call,
    HangUp,
    Session,
)
from kcoord.door.kafka.codec import Fields
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

MECHANISMS = ("PLAIN",)
_SOFTWARE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9\-.]*[A-Za-z0-9])?")
LONGEST_SOFTWARE = 128
NO_NODE = -1
FEATURE_LEVELS = {"group.version": 1, "share.version": 1, "transaction.version": 2}
"""Features that are served: groups of the consumer protocol (KIP-848); share groups (KIP-932, at level 2 with a
dead-letter topic); transactions with an epoch each (KIP-890)."""


async def api_versions(call: Call, request: Fields) -> Answer:
    """ApiVersions: what is served. From version 3 the client says what it is, from 5 which node it wants to reach."""
    if (request.get("cluster_id") is None) != (request.get("node_id", NO_NODE) == NO_NODE):
        return versions_served(call, Error.INVALID_REQUEST.code)
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_is_software(name) and _is_software(version)):
            return versions_served(call, Error.INVALID_REQUEST.code)
        call.session.software_name, call.session.software_version = name, version
        call.gateway.software.remember(call.client_id, call.client_host, name, version)
    return versions_served(call)


FEATURES: Answer = {
    "supported_features": [
        {"name": name, "min_version": level, "max_version": level} for name, level in FEATURE_LEVELS.items()
    ],
    "finalized_features": [
        {"name": name, "min_version_level": level, "max_version_level": level} for name, level in FEATURE_LEVELS.items()
    ],
    "finalized_features_epoch": 0,
}
"""What `kafka-features` shows. Levels of a service cannot be changed, so their epoch is always the first."""


def versions_served(call: Call, code: int = 0) -> Answer:
    """The answer to ApiVersions. With an error other than UNSUPPORTED_VERSION it has no keys."""
    apis = call.gateway.apis.values() if code in (Error.NONE.code, UNSUPPORTED_VERSION) else ()
    features: Answer = {} if code else FEATURES
    return {
        **features,
        "error_code": code,
        "api_keys": [
            {"api_key": api.key, "min_version": api.versions[0], "max_version": api.versions[1]}
            for api in sorted(apis, key=lambda api: api.key)
        ],
    }


def _is_software(text: str) -> bool:
    return len(text) <= LONGEST_SOFTWARE and _SOFTWARE.fullmatch(text) is not None


async def sasl_handshake(call: Call, request: Fields) -> Answer:
    """SaslHandshake. After version 0 the next frame is the token itself."""
    session = call.session
    if session.secret:
        return {"error_code": ILLEGAL_SASL_STATE, "mechanisms": MECHANISMS}
    if request.mechanism not in MECHANISMS:
        return {"error_code": UNSUPPORTED_SASL_MECHANISM, "mechanisms": MECHANISMS}
    session.mechanism = request.mechanism
    session.expects_token = call.version == 0
    return {"error_code": 0, "mechanisms": MECHANISMS}


async def sasl_authenticate(call: Call, request: Fields) -> Answer:
    """SaslAuthenticate: the connection belongs to the holder of the token from now on."""
    session = call.session
    if not session.mechanism or session.secret:
        return {"error_code": ILLEGAL_SASL_STATE, "error_message": "send SaslHandshake first, and log in once"}
    try:
        await log_in(call.runtime, session, request.auth_bytes)
    except ProtocolError as error:
        session.is_refused = error.error is Error.SASL_AUTHENTICATION_FAILED
        raise
    return {"error_code": 0, "auth_bytes": b"", "session_lifetime_ms": 0}


async def log_in(runtime: Runtime, session: Session, message: bytes) -> None:
    """The connection belongs to the holder of the token in a message of SASL/PLAIN.

    Raises SASL_AUTHENTICATION_FAILED unless it is that of a token, and HangUp if the token has too many connections.
    """
    parts = message.split(b"\0")
    try:
        _authzid, _user, secret = (part.decode() for part in parts)
    except ValueError:
        raise ProtocolError(
            Error.SASL_AUTHENTICATION_FAILED, "not a message of SASL/PLAIN: send a user name and a token as password"
        ) from None
    principal = await runtime.get(Access).authenticate(secret)
    if runtime.get(Quotas).limits_connections:
        try:
            runtime.get(Connections).claim(session.peer, principal)
        except ProtocolError as refused:
            raise HangUp(refused.detail) from None
    session.secret, session.token = secret, digest(secret)


APIS = (
    Api(17, "sasl_handshake", (0, 1), sasl_handshake, needs_login=False, is_hot=True),
    Api(36, "sasl_authenticate", (0, 2), sasl_authenticate, needs_login=False, is_hot=True),
)
