"""Parsing of the chain id that a request gives in its path or its query. Pure."""

from ....codecs.messages.resource_messages import AdaptersQuery
from ....config.errors import InvalidInput

_CHAIN_DIGITS_MAX = 16


def chain_in_path(text: str) -> int:
    """Parse the chain id in the `{chainId}` part of a URL path.

    Raises:
        InvalidInput: the text is not a decimal number of at most 16 digits.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _CHAIN_DIGITS_MAX):
        raise InvalidInput(field="chainId", expected="a chain id", got=text)
    return int(text)


def network_of(query: AdaptersQuery) -> int | None:
    """Return the chain id that a query names as `network` or `chainId`; None if the query has neither.

    Raises:
        InvalidInput: the two parameters differ.
    """
    if None not in (query.network, query.chain_id) and query.network != query.chain_id:
        raise InvalidInput(
            field="chainId", expected=f"the same as network, {query.network}", got=query.chain_id
        )
    return query.network or query.chain_id
