"""ConsumerGroupHeartbeat, where it differs from the operation of the REST API."""

from __future__ import annotations

import pytest

from kcoord.config import Config
from kcoord.door.kafka.api import UNSUPPORTED_VERSION
from tests.support.wire import Wire


class TestSwitchedOff:
    """The setting that says which protocols groups may use."""

    @pytest.fixture
    def config(self, config: Config) -> Config:
        """The classic protocol alone."""
        return config.override({"group.coordinator.rebalance.protocols": "classic"})

    @pytest.mark.parametrize("epoch", [0, 1, -1])
    async def test_clients_learn_that_it_is_not_supported(self, wire: Wire, epoch: int) -> None:
        """Before everything else (consumer.md 2.2, row 1): the group id is wrong too."""
        answer = await wire.ask("consumer_group_heartbeat", 1, group_id="", member_id="", member_epoch=epoch)
        assert answer.error_code == UNSUPPORTED_VERSION
        assert "group.coordinator.rebalance.protocols" in answer.error_message
