"""Process that runs aiohttp on uvloop as a client for firm quotes.

The process reads a line `port first seconds`: the server's port, the number of the first request, the time to
run. The answer is a line `answers seconds cpu`: the number of answers, the time they took, the CPU seconds.
"""

# pyright: reportMissingImports=false
import asyncio
import sys

import aiohttp
import uvloop
from yarl import URL

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
    url = URL(f"http://127.0.0.1:{port}{TARGET}")
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CALLERS),
        timeout=aiohttp.ClientTimeout(total=DEADLINE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:

        async def ask(parameters: FirmAsked) -> FirmOrder:
            body = body_of(parameters)
            headers = {"content-type": "application/json", **signed_headers(body, wall_ms())}
            async with session.post(url, data=body, headers=headers) as answer:
                return order_of(answer.status, await answer.read())

        for lasts_s in (WARM_S, seconds):
            asking.begin(lasts_s)
            await asyncio.gather(*(asking.call(ask) for _ in range(CALLERS)))
    return asking.result()


if __name__ == "__main__":
    for line in sys.stdin:
        port, first, seconds = line.split()
        sys.stdout.write(uvloop.run(measure(int(port), int(first), float(seconds))) + "\n")
        sys.stdout.flush()
