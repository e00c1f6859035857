"""Tells one maker on one chain of its faults and refusals, where its operator wants to hear: POST to its URL.

    fault -> a bounded queue, the oldest goes first -> all that wait in one request, signed as a firm quote's

A notice is sent once; one that is not taken is lost, and stands in GET /makers/scores all the same. A slow
maker delays nobody.

The answer is not read but for its status.

Source: spec 3.10.
"""

from collections import deque

import trio

from ....codecs.messages.resource_messages import MakerFault, MakerFaults
from ....codecs.messages.wire import encode
from ....config.limits import MAKER_FAULTS_WAITING_MAX
from ....config.timeouts import MAKER_NOTIFY_S
from ....crypto.addresses import to_checksum
from ....feeds.firm.maker_health import FaultTold
from ....feeds.net.http_client import HttpFailure
from ....feeds.net.signed_client import SignedClient


class FaultNotices:
    """One maker's.

    Args:
        network: chain id.
        client: open while `run` runs.

    Attributes:
        taken, lost: faults.
    """

    def __init__(self, maker: str, network: int, client: SignedClient) -> None:
        self._maker = maker
        self._network = network
        self._client = client
        self._waiting: deque[MakerFault] = deque(maxlen=MAKER_FAULTS_WAITING_MAX)
        self._is_wanted = trio.Event()
        self.taken = self.lost = 0

    def tell(self, told: FaultTold) -> None:
        """Have the maker told, soon."""
        self.lost += len(self._waiting) == MAKER_FAULTS_WAITING_MAX
        self._waiting.append(fault_of(told))
        self._is_wanted.set()

    async def run(self) -> None:
        """Send the notices, until cancelled."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted = trio.Event()
            faults = tuple(self._waiting)
            self._waiting.clear()
            try:
                body = encode(MakerFaults(self._maker, self._network, faults))
                answer = await self._client.post("", body, MAKER_NOTIFY_S)
                is_taken = 200 <= answer.status < 300
            except HttpFailure:
                is_taken = False
            self.taken += len(faults) * is_taken
            self.lost += len(faults) * (not is_taken)


def fault_of(told: FaultTold) -> MakerFault:
    """A fault as it is told to others."""
    return MakerFault(
        told.at_ms, told.fault.value, to_checksum(told.src), to_checksum(told.dest), told.detail
    )
