"""Process that runs cambist's client for firm quotes under load.

The process reads a line `port first seconds`: the server's port, the number of the first request, the time to
run. The answer is a line `answers seconds cpu`: the number of answers, the time they took, the CPU seconds.
"""

import sys

import trio

from bench.firm_asks import CALLERS, DEADLINE_S, Asking
from bench.maker_work import ACCESS_KEY, CHAIN_ID, DOMAIN, SECRET, wall_ms
from cambist.codecs.messages.maker_messages import FirmOrder
from cambist.crypto.hmac_auth import RequestSigner
from cambist.feeds.firm.firm_check import FirmAsked
from cambist.feeds.firm.firm_client import FirmClient

WARM_S = 0.5


async def measure(port: int, first: int, seconds: float) -> str:
    """Run the client's 64 callers for a warm-up, then for `seconds`; return the result as text.

    Args:
        port: port of the server of firm quotes.
        first: number of the first request.

    Returns:
        Number of answers, duration and CPU seconds.
    """
    signer = RequestSigner(DOMAIN, ACCESS_KEY, SECRET.encode())
    asking = Asking(first)
    async with FirmClient(
        "bench",
        f"http://127.0.0.1:{port}/{CHAIN_ID}",
        signer=signer,
        connections_max=CALLERS,
        wall_ms=wall_ms,
    ) as client:

        async def ask(parameters: FirmAsked) -> FirmOrder:
            return await client.ask(parameters, deadline_s=DEADLINE_S)

        for lasts_s in (WARM_S, seconds):
            asking.begin(lasts_s)
            async with trio.open_nursery() as nursery:
                for _ in range(CALLERS):
                    nursery.start_soon(asking.call, ask)
    return asking.result()


if __name__ == "__main__":
    for line in sys.stdin:
        port, first, seconds = line.split()
        sys.stdout.write(trio.run(measure, int(port), int(first), float(seconds)) + "\n")
        sys.stdout.flush()
