"""Process that runs httpx on trio as a client for firm quotes.

The process reads a line `port first seconds`: the server's port, the number of the first request, the time to
run. The answer is a line `answers seconds cpu`: the number of answers, the time they took, the CPU seconds.
"""

import sys

import httpx
import trio

from bench.firm_asks import CALLERS, DEADLINE_S, Asking, body_of, order_of
from bench.maker_work import TARGET, signed_headers, wall_ms
from cambist.codecs.messages.maker_messages import FirmOrder
from cambist.feeds.firm.firm_check import FirmAsked

WARM_S = 0.5


async def measure(port: int, first: int, seconds: float) -> str:
    """Run the client's 64 callers for a warm-up, then for `seconds`; return the result as text.

    Args:
        port: port of the server of firm quotes.
        first: number of the first request.

    Returns:
        Number of answers, duration and CPU seconds.
    """
    asking = Asking(first)
    limits = httpx.Limits(max_connections=CALLERS, max_keepalive_connections=CALLERS)
    url = httpx.URL(f"http://127.0.0.1:{port}{TARGET}")
    async with httpx.AsyncClient(limits=limits, timeout=DEADLINE_S, trust_env=False) as client:

        async def ask(parameters: FirmAsked) -> FirmOrder:
            body = body_of(parameters)
            headers = {"content-type": "application/json", **signed_headers(body, wall_ms())}
            answer = await client.post(url, content=body, headers=headers)
            return order_of(answer.status_code, answer.content)

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
