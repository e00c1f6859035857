"""`cambist order withdraw`: takes back native tokens that are deposited with the Delta contract."""

import click

from ....codecs.amounts import parse_units
from ....crypto.addresses import checked_address
from ....crypto.hexadecimal import to_hex
from ...chain.transact import StepFailedError
from ...trader.client.order.order_placing import take_back
from ...trader.client.outcome import failed_verdict
from ...trader.client.tokens import NATIVE_DECIMALS
from ...trader.client.trusted_contract import DELTA
from ..parameters import parsed
from ..trading import EXIT, SigningOptions, TradeSession, gathered, signing_list, venue_list

_wei = parsed(lambda text, field: parse_units(text, NATIVE_DECIMALS, field))


@click.command("withdraw")
@click.option(
    "--amount", "wei", callback=_wei, help="Amount in whole native tokens; the whole deposit if absent."
)
@click.option(
    "--to", "receiver", callback=parsed(checked_address), help="Receiver, in place of the key's account."
)
@gathered(SigningOptions, "options", *signing_list(DELTA), *venue_list())
def withdraw(options: SigningOptions, wei: int | None, receiver: bytes | None) -> None:
    """Take back native tokens that are deposited with the Delta contract.

    A live order that gives native tokens cannot be settled without its deposit.
    """
    options.run(_withdraw, options, wei, receiver)


async def _withdraw(session: TradeSession, options: SigningOptions, wei: int | None, to: bytes | None) -> int:
    contract = await session.contract(DELTA)
    session.under_way.hint = (
        "a withdrawal that was sent may be mined all the same; ask again for what is left"
    )
    trader = session.trader
    try:
        receipt, amount = await take_back(trader, contract, wei, to or trader.key.address)
    except StepFailedError as failed:
        click.echo(f"Error: {failed}", err=True)
        return EXIT[failed_verdict(failed)]
    result = {"txHash": to_hex(receipt.tx_hash), "amountWei": str(amount)}
    options.show(result, [f"{amount} wei came back: {result['txHash']}"])
    return 0
