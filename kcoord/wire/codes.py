"""Error numbers of Kafka that only its wire protocol has; all others are in `kcoord.protocol.errors`.

Source: Kafka's `Errors`.
"""

from __future__ import annotations

from typing import Final

UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
PRODUCER_FENCED: Final = 90
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
REBOOTSTRAP_REQUIRED: Final = 129
