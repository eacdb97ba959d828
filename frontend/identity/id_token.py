"""The ID token: its signature and its claims, checked by joserfc and Authlib.

Source: OpenID Connect Core 1.0, 3.1.3.7 (ID Token Validation); RFC 8725 (JWT best practice).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures that only the provider can make. No HMAC: its key would be the client's secret, or a public key."""

LARGEST_TOKEN = 65_536


class UnknownKey(Exception):
    """Signed with a key that is not in the set: the provider may have changed its keys."""


class BadToken(Exception):
    """The token must not be believed; the message says why, for the log."""


def verify(
    token: str,
    keys: Mapping[str, object],
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: str,
    skew_seconds: int,
) -> dict[str, Any]:
    """The claims of a token. `keys` is the provider's JWKS. Raises UnknownKey, BadToken."""
    # Imported by the first sign-in: a tenth of the start of every server and worker, and most have no provider.
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import InvalidKeyIdError, JoseError
    from joserfc.jwk import KeySet
    from joserfc.jws import JWSRegistry

    if len(token) > LARGEST_TOKEN:
        raise BadToken("longer than 64 KiB")
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    try:
        found = jwt.decode(token, key=KeySet.import_key_set(_of_signatures(keys)), registry=registry)
        claims = CodeIDToken(
            found.claims,
            found.header,
            {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
            {"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(now=int(time.time()), leeway=skew_seconds)
    except InvalidKeyIdError as error:
        raise UnknownKey(str(error)) from error
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadToken(f"{type(error).__name__}: {error}") from error
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise BadToken("sub is no text of 1 to 255 characters")
    return dict(claims)


def _of_signatures(keys: Mapping[str, object]) -> Any:
    """The public keys for signatures. Symmetric ones have no place in a document that everybody can read."""
    entries = keys.get("keys")
    if not isinstance(entries, list):
        raise BadToken("the provider's key set has no list of keys")
    kinds = ("RSA", "EC", "OKP")
    kept = [
        key for key in entries if isinstance(key, dict) and key.get("kty") in kinds and key.get("use", "sig") == "sig"
    ]
    if not kept:
        raise UnknownKey("the provider's key set has no key for signatures")
    return {"keys": kept}
