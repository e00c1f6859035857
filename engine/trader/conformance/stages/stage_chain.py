"""Stage that queries a node: chain id, decimals of tokens, and the funds and signature of each order."""

from collections.abc import Sequence

from .....config.errors import ChainError
from .....crypto.addresses import parse_address
from ..checks.firm import Quoted
from ..checks.signatures import order_digest
from ..node import ProbedNode
from ..rules import Said, fault, judged
from ..session import Session

_ORDERS_MAX = 8
_TOKENS_MAX = 64


async def check_chain(session: Session) -> None:
    """Judge a node's chain id against the options, and decimals of GET /tokens against the contracts."""
    node, options = session.node, session.options
    if node is None:
        session.skip("no node is given: --node-url", "chain")
        return
    try:
        found = await node.chain_id()
        held = options.chain_id in (None, found)
        session.add([judged("chain.id", held, "node", f"chain {options.chain_id}", Said(str(found)))])
        if session.wants("chain.decimals"):
            await _check_decimals(session, node)
    except ChainError as error:
        session.lack(error.detail, "chain")


async def _check_decimals(session: Session, node: ProbedNode) -> None:
    for token_id, token in list(session.tokens.items())[:_TOKENS_MAX]:
        where, address = f"GET {session.prefix}/tokens {token_id}", parse_address(token.address)
        found = await node.decimals(address)
        if found is not None:
            expected = f"decimals {found}, as decimals() of the contract says"
            session.add([judged("chain.decimals", found == token.decimals, where, expected, token.decimals)])
        elif not await node.has_code(address):
            expected = f"a token at {token.address}"
            session.add([fault("chain.decimals", where, expected, Said("no contract there"))])
        else:
            session.lack("no token's contract tells its decimals", "chain.decimals")


async def check_orders_on_chain(session: Session, orders: Sequence[Quoted]) -> None:
    """Judge the maker's balance, allowance and contract signature for the first _ORDERS_MAX orders.

    The function does nothing without a node.
    """
    node = session.node
    if node is None:
        return
    try:
        for quoted in orders[:_ORDERS_MAX]:
            await _check_funds(session, node, quoted)
            await _check_contract(session, node, quoted)
    except ChainError as error:
        session.lack(error.detail, "chain")


async def _check_funds(session: Session, node: ProbedNode, quoted: Quoted) -> None:
    contract, order = session.options.rfq_contract, quoted.order
    token, maker = parse_address(order["makerAsset"]), parse_address(order["maker"])
    amount, where = int(order["makerAmount"]), quoted.asking.where
    balance = await node.balance(token, maker)
    session.add([judged("chain.balance", balance > amount, where, f"more than {amount}", Said(str(balance)))])
    if contract is None:
        session.skip("needs --rfq-contract", "chain.allowance")
        return
    allowance = await node.allowance(token, maker, contract)
    expected = f"more than {amount} for the RFQ contract"
    session.add([judged("chain.allowance", allowance > amount, where, expected, Said(str(allowance)))])


async def _check_contract(session: Session, node: ProbedNode, quoted: Quoted) -> None:
    domain, maker = session.domain, parse_address(quoted.order["maker"])
    if not await node.has_code(maker):
        session.skip("the maker is no contract", "chain.contract-signature")
        return
    session.skip("the maker is a contract: see chain.contract-signature", "firm.signature")
    if domain is None:
        session.skip("needs --chain-id and --rfq-contract", "chain.contract-signature")
        return
    text = quoted.order["signature"]
    try:
        signature = bytes.fromhex(text[2:])
    except ValueError:
        signature = b""
    accepted = await node.accepts(maker, order_digest(quoted.order, domain), signature)
    expected = "isValidSignature gives 0x1626ba7e"
    session.add([judged("chain.contract-signature", accepted, quoted.asking.where, expected, text)])
