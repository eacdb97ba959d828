"""Errors on their way between processes."""

from __future__ import annotations

import pickle

from kcoord.protocol.errors import Action, Error, ProtocolError


def test_an_error_arrives_as_it_was_sent() -> None:
    sent = ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "away", fields={"a": 1}, action=Action.STOP, retry_after_ms=5)
    arrived = pickle.loads(pickle.dumps(sent))
    assert type(arrived) is ProtocolError
    assert vars(arrived) == vars(sent)
    assert str(arrived) == "away"
