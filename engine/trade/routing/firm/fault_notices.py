"""Notices to a maker of its faults and refusals on one chain, by POST to the maker's `notify_url`.

    fault -> bounded queue, drops the oldest -> one signed request with all queued faults

A notice is sent once; if the maker does not answer 2xx, the notice is lost, but GET /makers/scores still
lists its faults. A slow maker delays no other maker and no swap.

Only the status of the answer is read.

Source: spec 3.10.
"""

from collections import deque

import trio

from .....codecs.messages.resource_messages import MakerFault, MakerFaults
from .....codecs.messages.wire import encode
from .....config.limits import MAKER_FAULTS_WAITING_MAX
from .....config.timeouts import MAKER_NOTIFY_S
from .....crypto.addresses import to_checksum
from .....feeds.firm.maker_health import FaultTold
from .....feeds.transport.http_client import HttpFailure
from .....feeds.transport.signed_client import SignedClient


class FaultNotices:
    """Queue of a maker's faulty and refused quotes, which `run` reports to the maker by POST requests.

    Args:
        network: chain id.
        client: HTTP client for the maker; must stay open while `run` runs.

    Attributes:
        taken: count of faults delivered: the maker answered their request with 2xx.
        lost: count of faults not delivered: their request failed, or the full queue dropped them.
    """

    def __init__(self, maker: str, network: int, client: SignedClient) -> None:
        self._maker = maker
        self._network = network
        self._client = client
        self._waiting: deque[MakerFault] = deque(maxlen=MAKER_FAULTS_WAITING_MAX)
        self._is_wanted = trio.Event()
        self.taken = self.lost = 0

    def tell(self, record: FaultTold) -> None:
        """Queue a fault of the maker for the next notice; a full queue drops its oldest fault."""
        self.lost += len(self._waiting) == MAKER_FAULTS_WAITING_MAX
        self._waiting.append(fault_of(record))
        self._is_wanted.set()

    async def run(self) -> None:
        """Post the queued faults to the maker, all in one request, until cancelled."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted = trio.Event()
            faults = tuple(self._waiting)
            self._waiting.clear()
            try:
                body = encode(MakerFaults(self._maker, self._network, faults))
                answer = await self._client.post("", body, MAKER_NOTIFY_S)
                is_taken = answer.status < 300
            except HttpFailure:
                is_taken = False
            self.taken += len(faults) * is_taken
            self.lost += len(faults) * (not is_taken)


def fault_of(record: FaultTold) -> MakerFault:
    """Convert the record of a maker's fault to the message that the maker receives."""
    return MakerFault(
        record.at_ms, record.fault.value, to_checksum(record.src), to_checksum(record.dest), record.detail
    )
