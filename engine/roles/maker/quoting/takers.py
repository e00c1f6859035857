"""Contracts that may fill a quote: addresses from the settings, and from the service's
/adapters/contract-takers.

While the service's list of takers cannot be read, the last list that was read stays in use; before the first,
only the settings' list.

Source: spec 3.9.7 and 3.9.8; interop.md 3.
"""

from collections.abc import Iterable

import httpx
import structlog
import trio

from .....codecs.messages.resource_messages import ContractTakers
from .....codecs.messages.wire import decoder
from .....config import limits
from .....config.errors import CambistError, MakerError
from .....crypto.addresses import ZERO_ADDRESS, parse_address
from .quotes import Desk

_log = structlog.get_logger("cambist.maker")
_decode = decoder(ContractTakers, bytes_max=limits.JSON_BYTES_MAX)


async def follow_takers(
    client: httpx.AsyncClient, url: str, desk: Desk, fixed: Iterable[bytes], every_s: float
) -> None:
    """Update the contracts that may fill quotes (`desk.takers`) every `every_s` seconds until cancelled.

    Args:
        url: URL of the RFQ service's list of these contracts.
        fixed: contracts that always belong to `desk.takers`, addresses of 20 bytes.
    """
    fixed = tuple(fixed)
    while True:
        try:
            takers = await read_takers(client, url)
        except CambistError as error:
            _log.warning("contract takers cannot be read", detail=error.detail)
        else:
            desk.allow({*fixed, *takers})
        await trio.sleep(every_s)


async def read_takers(client: httpx.AsyncClient, url: str) -> list[bytes]:
    """Fetch the RFQ service's list of takers, the contracts that may fill a quote, as addresses of 20 bytes.

    Raises:
        MakerError: the service is not reached, does not answer with status 200, or lists the zero address.
        InvalidInput: the answer is no list of addresses.
    """
    try:
        response = await client.get(url)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise MakerError(f"contract takers: not reached: {type(error).__name__}") from None
    if response.status_code != 200:
        raise MakerError(f"contract takers: HTTP status {response.status_code}")
    takers = [parse_address(text, "contract takers") for text in _decode(response.content)]
    if ZERO_ADDRESS in takers:
        raise MakerError("contract takers: the zero address is listed: then anybody could fill")
    return takers
