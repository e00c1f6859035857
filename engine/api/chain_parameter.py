"""The chain that a request names, in its path or in its query. Pure."""

from ...codecs.messages.resource_messages import AdaptersQuery
from ...config.errors import InvalidInput

_CHAIN_DIGITS_MAX = 16


def chain_in_path(text: str) -> int:
    """Return the chain id of a path's `{chainId}`.

    Raises:
        InvalidInput: the text is no chain id.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _CHAIN_DIGITS_MAX):
        raise InvalidInput(field="chainId", expected="a chain id", got=text)
    return int(text)


def network_of(query: AdaptersQuery) -> int | None:
    """The chain id that a query names, or None if it names none.

    Raises:
        InvalidInput: the query names two chains.
    """
    if None not in (query.network, query.chain_id) and query.network != query.chain_id:
        raise InvalidInput(
            field="chainId", expected=f"the same as network, {query.network}", got=query.chain_id
        )
    return query.network or query.chain_id
