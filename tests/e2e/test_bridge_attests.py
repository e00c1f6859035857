"""Burns at a dev messenger: attested as asked for, received once; delays, silence, wrong signatures."""

from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.bridges import cctp
from cambist.codecs.contracts.abi import address_word
from cambist.config.errors import Reverted
from cambist.crypto.addresses import to_checksum
from cambist.crypto.keccak import keccak256
from cambist.crypto.signatures import signer
from cambist.engine.chain.port import Receipt
from support.bridge.two_chains import RECIPIENT, STOCK, TwoChains, two_chains
from support.chain.world import ATTESTER, USDC
from support.patience import until_told

FAST = cctp.FINALITY_CONFIRMED
FINAL = cctp.FINALITY_FINALIZED


async def entry(two: TwoChains, tx_hash: bytes, origin: int) -> dict[str, Any]:
    domain = two.places[origin].domain
    status, body = await two.get(f"/v2/messages/{domain}?transactionHash=0x{tx_hash.hex()}")
    assert status == 200
    (found,) = body["messages"]
    told: dict[str, Any] = found
    return told


def events(receipt: Receipt) -> list[Any]:
    found = [cctp.decode_cctp_log(log.topics, log.data) for log in receipt.logs]
    return [event for event in found if event is not None]


async def test_a_standard_burn_is_minted_whole_once(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        tx_hash, began_s = await two.burn(two.first, 1_000 * USDC), trio.current_time()
        assert await two.balance(two.first, "USDC", two.user) == (STOCK - 1_000) * USDC
        message, attestation = await two.attested(two.first, tx_hash)
        assert trio.current_time() - began_s >= two.attester.orders.final_after_s
        assert signer(keccak256(message), attestation) == ATTESTER.address
        minted, received = events(await two.receive(two.second, message, attestation))
        assert minted == cctp.MintAndWithdraw(
            RECIPIENT.address, 1_000 * USDC, two.tokens["USDC"][two.second], 0
        )
        parsed = cctp.parse_message(message)
        assert received == cctp.MessageReceived(
            two.stranger.address,
            7,
            parsed.nonce,
            address_word(two.places[two.first].messenger),
            FINAL,
            parsed.body,
        )
        assert (parsed.source_domain, parsed.destination_domain, parsed.finality_executed) == (7, 9, FINAL)
        assert await two.balance(two.second, "USDC", RECIPIENT) == 1_000 * USDC
        with pytest.raises(Reverted, match="Nonce already used"):
            await two.receive(two.second, message, attestation)


async def test_a_fast_burn_costs_a_fee_and_expires(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.attester.order(expires_after_blocks=3)
        began_s = trio.current_time()
        tx_hash = await two.burn(two.first, 999_999_999, max_fee=100_000, min_finality=FAST)
        message, attestation = await two.attested(two.first, tx_hash)
        assert trio.current_time() - began_s < two.attester.orders.final_after_s
        burn = cctp.parse_burn(cctp.parse_message(message).body)
        assert (burn.fee_executed, cctp.parse_message(message).finality_executed) == (100_000, FAST)
        head = (await two.chains[two.second].upcoming()).head.number
        assert burn.expiration_block == head + 3
        snapshot = await two.chains[two.second].snapshot()
        await two.receive(two.second, message, attestation)
        assert await two.balance(two.second, "USDC", RECIPIENT) == 999_899_999
        assert await two.balance(two.second, "USDC", two.worlds[two.second].owner) == 100_000
        await two.chains[two.second].restore(snapshot)
        await two.chains[two.second].mine(3)
        with pytest.raises(Reverted, match="Message expired"):
            await two.receive(two.second, message, attestation)
        nonce = cctp.parse_message(message).nonce
        status, told = await two.post(f"/v2/reattest/0x{nonce.hex()}")
        assert (status, told["nonce"]) == (200, "0x" + nonce.hex())
        final, attestation = await two.attested(two.first, tx_hash)
        assert cctp.parse_message(final).nonce == nonce
        burn = cctp.parse_burn(cctp.parse_message(final).body)
        assert (burn.fee_executed, burn.expiration_block) == (100_000, 0)
        await two.receive(two.second, final, attestation)
        assert await two.balance(two.second, "USDC", RECIPIENT) == 999_899_999


async def test_a_fast_burn_for_too_small_a_fee_waits_for_finality(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        tx_hash = await two.burn(two.first, 1_000 * USDC, max_fee=99_999, min_finality=FAST)
        await trio.sleep(3)
        waiting = await entry(two, tx_hash, two.first)
        assert (waiting["status"], waiting["delayReason"]) == ("pending_confirmations", "insufficient_fee")
        assert (waiting["message"], waiting["attestation"], waiting["decodedMessage"]) == (
            "0x",
            "PENDING",
            None,
        )
        message, attestation = await two.attested(two.first, tx_hash)
        await two.receive(two.second, message, attestation)
        assert await two.balance(two.second, "USDC", RECIPIENT) == 1_000 * USDC


async def test_a_silent_attester_and_its_end(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.attester.order(is_silent=True)
        tx_hash = await two.burn(two.second, 1_000 * USDC)
        await trio.sleep(3_600)
        assert (await entry(two, tx_hash, two.second))["status"] == "pending_confirmations"
        two.attester.order(is_silent=False)
        message, attestation = await two.attested(two.second, tx_hash)
        await two.receive(two.first, message, attestation)
        assert await two.balance(two.first, "USDC", RECIPIENT) == 1_000 * USDC


async def test_an_attester_waits_as_ordered(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.attester.order(final_after_s=900)
        tx_hash = await two.burn(two.first, 1_000 * USDC)
        await trio.sleep(899)
        assert (await entry(two, tx_hash, two.first))["status"] == "pending_confirmations"
        await trio.sleep(3)
        assert (await entry(two, tx_hash, two.first))["status"] == "complete"


async def test_a_wrong_signature_is_refused_and_can_be_replaced(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.attester.order(signs_wrongly=True)
        tx_hash = await two.burn(two.first, 1_000 * USDC)
        message, wrong = await two.attested(two.first, tx_hash)
        with pytest.raises(Reverted, match="signer is not enabled attester"):
            await two.receive(two.second, message, wrong)
        two.attester.order(signs_wrongly=False)
        nonce = cctp.parse_message(message).nonce
        await two.post(f"/v2/reattest/0x{nonce.hex()}")
        again, right = await two.attested(two.first, tx_hash)
        assert again == message
        for forged in (msgspec.structs.replace(cctp.parse_message(message), nonce=bytes(32)), None):
            tampered = cctp.pack_message(forged) if forged else message + b"\0"
            with pytest.raises(Reverted, match="signer is not enabled attester"):
                await two.receive(two.second, tampered, right)
        await two.receive(two.second, message, right)


async def test_an_attester_gives_the_same_nonce_after_a_stop(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        tx_hash = await two.burn(two.first, 1_000 * USDC)
        first = await two.attested(two.first, tx_hash)
        two.stop()
        other_hash = await two.burn(two.first, 10 * USDC)
        await two.start()
        assert (await two.attested(two.first, tx_hash)) == first
        await two.receive(two.second, *(await two.attested(two.first, other_hash)))
        await two.receive(two.second, *first)
        assert await two.balance(two.second, "USDC", RECIPIENT) == 1_010 * USDC


async def test_a_burn_that_a_reorganisation_removes_is_forgotten(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        chain = two.chains[two.first]
        burn = await two.signed_burn(two.first, 1_000 * USDC)
        tx_hash = await chain.send_raw(burn.raw)
        await trio.sleep(2)
        nonce = (await entry(two, tx_hash, two.first))["eventNonce"]
        await chain.reorganise(1)
        await trio.sleep(2)
        target = f"/v2/messages/7?transactionHash=0x{tx_hash.hex()}"
        assert (await two.get(target))[0] == 404
        assert (await two.get(f"/v2/messages/7?nonce={nonce}"))[0] == 404
        assert await chain.send_raw(burn.raw) == tx_hash  # into another block
        found = await two.attested(two.first, tx_hash)
        assert "0x" + cctp.parse_message(found[0]).nonce.hex() == nonce
        await chain.reorganise(1)  # after finality: the attestation stays
        await trio.sleep(2)
        assert await two.attested(two.first, tx_hash) == found


async def test_the_answers_of_the_service(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        tx_hash = await two.burn(two.first, 1_000 * USDC, max_fee=100_000, min_finality=FAST)
        await two.attested(two.first, tx_hash)
        found = await entry(two, tx_hash, two.first)
        messenger = {one: "0x" + place.messenger.hex() for one, place in two.places.items()}
        assert found["cctpVersion"] == 2
        assert found["decodedMessage"] | {"messageBody": "", "nonce": ""} == {
            "sourceDomain": "7",
            "destinationDomain": "9",
            "nonce": "",
            "sender": messenger[two.first],
            "recipient": messenger[two.second],
            "destinationCaller": "0x" + "00" * 20,
            "minFinalityThreshold": "1000",
            "finalityThresholdExecuted": "1000",
            "messageBody": "",
            "decodedMessageBody": {
                "burnToken": "0x" + two.tokens["USDC"][two.first].hex(),
                "mintRecipient": "0x" + RECIPIENT.address.hex(),
                "amount": str(1_000 * USDC),
                "messageSender": "0x" + two.user.address.hex(),
                "maxFee": "100000",
                "feeExecuted": "100000",
                "expirationBlock": found["decodedMessage"]["decodedMessageBody"]["expirationBlock"],
                "hookData": "0x",
            },
        }
        by_nonce = await two.get(f"/v2/messages/7?nonce={found['eventNonce']}")
        assert by_nonce == (200, {"messages": [found]})
        fees = [{"finalityThreshold": 1000, "minimumFee": 1}, {"finalityThreshold": 2000, "minimumFee": 0}]
        assert await two.get("/v2/burn/USDC/fees/7/9") == (200, fees)
        for target, status in (
            (f"/v2/messages/9?transactionHash=0x{tx_hash.hex()}", 404),
            ("/v2/messages/7?transactionHash=0x" + "00" * 32, 404),
            ("/v2/messages/7?transactionHash=0x0", 400),
            ("/v2/messages/seven?transactionHash=0x00", 400),
            ("/v2/messages/7", 400),
            ("/v2/burn/USDC/fees/7/7", 404),
            ("/v2/burn/USDC/fees/7/8", 404),
        ):
            assert (await two.get(target))[0] == status, target
        assert (await two.post("/v2/reattest/0x" + "00" * 32))[0] == 404


async def test_the_suggested_fees(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(fill_after_s=12)
        token = {name: {one: "0x" + at.hex() for one, at in two.tokens[name].items()} for name in two.tokens}

        async def asked(amount: int = 1_000 * USDC, changes: Any = MappingProxyType({})) -> tuple[int, Any]:
            members = {
                "inputToken": token["USDT"][two.first],
                "outputToken": token["USDT"][two.second],
                "originChainId": two.first,
                "destinationChainId": two.second,
                "amount": amount,
            }
            return await two.get(f"/suggested-fees?{urlencode(members | {**changes})}")

        status, body = await asked(1_000 * USDC)
        fees = {
            "relayerCapitalFee": 300_000,
            "relayerGasFee": 20_000,
            "lpFee": 100_000,
            "totalRelayFee": 420_000,
        }
        assert status == 200
        for name, total in fees.items():
            assert body[name] == {"pct": str(total * 10**9), "total": str(total)}
        assert (body["outputAmount"], body["isAmountTooLow"]) == (str(999_580_000 * 10**12), False)
        assert body["timestamp"] == str(await two.now_s(two.first))
        assert (body["exclusiveRelayer"], body["exclusivityDeadline"]) == ("0x" + "00" * 20, 0)
        pools = [to_checksum(place.spoke_pool) for place in two.places.values()]
        assert [body["spokePoolAddress"], body["destinationSpokePoolAddress"]] == pools
        assert body["estimatedFillTimeSec"] == 12
        assert body["limits"]["minDeposit"] == "40001"
        assert body["limits"]["maxDeposit"] == str(STOCK * USDC)  # what the relayer has on the destination
        skips = {"skipAmountLimit": "true"}
        assert (await asked(40_000, skips))[1]["isAmountTooLow"]
        assert not (await asked(40_001))[1]["isAmountTooLow"]
        assert (await asked(10_000, skips))[1]["outputAmount"] == "0"

        # Refusals, in the original's words: github.com/across-protocol/frontend, api/suggested-fees.ts.
        low = {"code": "AMOUNT_TOO_LOW", "message": "Sent amount is too low relative to fees"}
        most = f"Amount exceeds max. deposit limit: {STOCK}.0 USDT"
        high = {"code": "AMOUNT_TOO_HIGH", "message": most}
        of_across = {"type": "AcrossApiError", "status": 400}
        assert await asked(40_000) == (400, of_across | low)
        assert await asked(STOCK * USDC + 1, skips) == (400, of_across | high)
        assert (await asked(STOCK * USDC))[0] == 200
        two.relayer.order(is_insolvent=True)
        none = high | {"message": "Amount exceeds max. deposit limit: 0.0 USDT"}
        assert await asked(1_000 * USDC, skips) == (400, of_across | none)
        wrong: list[tuple[dict[str, object], str]] = [
            ({"outputToken": token["USDC"][two.second]}, "ROUTE_NOT_ENABLED"),
            ({"destinationChainId": two.first}, "ROUTE_NOT_ENABLED"),
            ({"destinationChainId": 1}, "ROUTE_NOT_ENABLED"),
            ({"amount": 0}, "INVALID_PARAM"),
            ({"amount": "1.5"}, "INVALID_PARAM"),
            ({"inputToken": "0x12"}, "INVALID_PARAM"),
        ]
        for changes, code in wrong:
            status, body = await asked(changes=changes)
            assert (status, body["code"]) == (400, code), changes


async def test_controls_over_http(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        ordered = await two.control("bridge_orderAttester", {"is_silent": True, "final_after_s": 2.5})
        assert (ordered["is_silent"], ordered["final_after_s"], ordered["fast_fee_bps"]) == (True, 2.5, 1)
        assert two.attester.orders.is_silent
        assert (await two.control("bridge_orderRelayer", {"fill_after_s": 600}))["fill_after_s"] == 600
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await until_told(lambda: _is_open(two))
        state = await two.control("bridge_state")
        assert state["openDeposits"] == [{"depositId": deposit.deposit_id, "destinationChainId": two.second}]
        assert state["attester"] == ordered
        for wrong in ({"is_asleep": True}, {"fill_after_s": -1}, {"fill_after_s": "soon"}):
            assert (await two.control("bridge_orderRelayer", wrong))["code"] == -32602
        assert two.relayer.orders.fill_after_s == 600


async def _is_open(two: TwoChains) -> bool:
    return bool(two.relayer.open_deposits())
