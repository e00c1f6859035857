"""The console's pure JavaScript against Python: amounts, prices, events, calldata, types to sign."""

import gzip
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cambist.engine.console
from cambist.codecs.contracts.router_calldata import RouterSwap, swap_exact_in, swap_exact_out
from cambist.codecs.eip712_orders.delta import ORDER, TWAP_BUY_ORDER, TWAP_ORDER
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.trader.client.schedule import Schedule
from support.oracles import Stories

pytestmark = pytest.mark.oracle

Ask = Callable[..., Any]
_quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
OWNER, ROUTER = "0x" + "11" * 20, "0x" + "22" * 20
SRC, DEST = "0x" + "33" * 20, "0x" + "44" * 20
NO_BRIDGE = {
    "protocolSelector": "0x00000000",
    "destinationChainId": 0,
    "outputToken": "0x" + "00" * 20,
    "scalingFactor": 0,
    "protocolData": "0x",
}
TERMS: dict[str, Any] = {
    "chainId": 31337,
    "contract": ROUTER,
    "owner": OWNER,
    "srcToken": SRC,
    "destToken": DEST,
    "side": "SELL",
    "srcAmount": "1000",
    "destAmount": "990",
    "deadline": 1_800_000_000,
    "feeBps": 1,
}
VALUE: dict[str, Any] = {
    "owner": OWNER,
    "beneficiary": OWNER,
    "srcToken": SRC,
    "destToken": DEST,
    "srcAmount": "1000",
    "destAmount": "990",
    "expectedAmount": "1000",
    "deadline": 1_800_000_000,
    "kind": 0,
    "nonce": "7",
    "partnerAndFee": "513",
    "permit": "0x",
    "metadata": "0x",
    "bridge": NO_BRIDGE,
}
DOMAIN = {"name": "Delta", "version": "1", "chainId": 31337, "verifyingContract": ROUTER}


@pytest.fixture
def ask(stories: Stories) -> Ask:
    def asked(function: str, **given: Any) -> Any:
        return stories.told("console_pure", function, json.dumps(given))

    return asked


# --- Amounts ------------------------------------------------------------------------------------------


@_quick
@given(raw=st.integers(0, 2**256 - 1), decimals=st.integers(0, 36))
def test_whole_amounts_are_exact(ask: Ask, raw: int, decimals: int) -> None:
    told = ask("units", raw=str(raw), decimals=decimals)
    assert told["back"] == str(raw)
    plain, shown = Fraction(told["plain"]), Fraction(told["shown"].replace(",", ""))
    assert plain == Fraction(raw, 10**decimals)
    assert 0 <= plain - shown <= plain / 10**10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,250.5", "1250500000"),
        (".5", "500000"),
        ("1.", "1000000"),
        ("1.1234567", {"refused": "At most 6 digits after the point"}),
        ("1e3", {"refused": "Enter an amount such as 1.25"}),
        ("-1", {"refused": "Enter an amount such as 1.25"}),
        ("", {"refused": "Enter an amount such as 1.25"}),
        ("9" * 80, {"refused": "The amount is too large"}),
    ],
)
def test_amounts_are_read_as_people_write_them(ask: Ask, text: str, said: Any) -> None:
    assert ask("parse", text=text, decimals=6) == said


def test_prices_and_dollars(ask: Ask) -> None:
    trade = {"src": str(2 * 10**18), "srcDecimals": 18, "dest": str(5_000 * 10**6), "destDecimals": 6}
    assert ask("price", **trade) == "2,500.00"
    small = {"src": str(10**6), "srcDecimals": 6, "dest": str(4 * 10**14), "destDecimals": 18}
    assert ask("price", **small) == "0.000400000"
    assert ask("usd", text="10002.0000000000") == "$10,002.00"
    assert ask("usd", text="9994.9999") == "$9,994.99"
    assert ask("usd", text="") == "–"


def test_bounds_are_never_worse_than_the_slippage(ask: Ask) -> None:
    assert ask("bounded", side="SELL", amount="10001", slippageBps=50) == str(10001 * 9950 // 10_000)
    assert ask("bounded", side="BUY", amount="10001", slippageBps=50) == str(-(-10001 * 10_050 // 10_000))


def test_events_of_a_stream(ask: Ask) -> None:
    block = 'event: order\nid: 0a\ndata: {"a":\ndata: 1}'
    assert ask("event", block=block) == {"id": "0a", "name": "order", "data": '{"a":1}'}
    assert ask("event", block=": beat\nid: 0b") == {"id": "0b", "name": "message", "data": ""}


# --- What is signed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("permit", [b"", b"\1" * 65])
@pytest.mark.parametrize(("encode", "side"), [(swap_exact_in, "SELL"), (swap_exact_out, "BUY")])
def test_the_terms_in_a_swaps_calldata(
    ask: Ask, encode: Callable[[RouterSwap], bytes], side: str, permit: bytes
) -> None:
    src, dest, receiver = b"\3" * 20, b"\4" * 20, b"\5" * 20
    swap = RouterSwap(src, dest, 2**255, 7, 8, receiver, 1_800_000_000, (1 << 96) | 513, permit, ())
    assert ask("swap", data=to_hex(encode(swap))) == {
        "side": side,
        "srcToken": to_hex(src),
        "destToken": to_hex(dest),
        "srcAmount": str(2**255),
        "destAmount": "7",
        "receiver": to_hex(receiver),
        "deadline": "1800000000",
        "feeBps": "1",
        "hasPermit": bool(permit),
    }


@pytest.mark.parametrize("data", ["0x", "0x095ea7b3", "0x585b54b5" + "0" * 64, "0x585b54b5"])
def test_other_calldata_is_no_swap(ask: Ask, data: str) -> None:
    assert ask("swap", data=data) is None


def test_the_types_to_sign_are_those_of_the_contracts(ask: Ask) -> None:
    whole = ask("typed", toSign={"domain": DOMAIN, "value": VALUE}, terms=TERMS)
    sliced = {
        name: value
        for name, value in VALUE.items()
        if name not in ("srcAmount", "destAmount", "expectedAmount", "kind")
    }
    sliced |= {"interval": 60, "numSlices": 2, "destAmountPerSlice": "990", "totalSrcAmount": "1000"}
    terms = TERMS | {"schedule": {"interval": 60, "slices": 2}}
    slices = ask("typed", toSign={"domain": DOMAIN, "value": sliced}, terms=terms)
    bought = {
        name: value for name, value in sliced.items() if name not in ("destAmountPerSlice", "totalSrcAmount")
    }
    bought |= {"totalDestAmount": "990", "maxSrcAmount": "1000"}
    purchase = ask("typed", toSign={"domain": DOMAIN, "value": bought}, terms=terms | {"side": "BUY"})
    for told, kind in ((whole, ORDER), (slices, TWAP_ORDER), (purchase, TWAP_BUY_ORDER)):
        assert told["primaryType"] == kind.name
        types = {name: members for name, members in told["types"].items() if name != "EIP712Domain"}
        assert types == kind.wire_types
        assert told["domain"] == DOMAIN


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("totalDestAmount", "989"), ("totalDestAmount", "991"), ("maxSrcAmount", "1001"), ("interval", 61),
        ("numSlices", 3), ("owner", ROUTER), ("bridge", NO_BRIDGE | {"destinationChainId": 5}),
    ],
)  # fmt: skip
def test_any_other_twap_purchase_is_refused(ask: Ask, member: str, value: Any) -> None:
    unlike = ("srcAmount", "destAmount", "expectedAmount", "kind")
    bought = {name: value for name, value in VALUE.items() if name not in unlike}
    bought |= {"interval": 60, "numSlices": 2, "totalDestAmount": "990", "maxSrcAmount": "1000"}
    terms = TERMS | {"side": "BUY", "schedule": {"interval": 60, "slices": 2}}
    assert "refused" not in ask("typed", toSign={"domain": DOMAIN, "value": bought}, terms=terms)
    told = ask("typed", toSign={"domain": DOMAIN, "value": bought | {member: value}}, terms=terms)
    assert told["refused"].endswith("Nothing was signed.")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("owner", ROUTER),
        ("beneficiary", ROUTER),
        ("srcToken", DEST),
        ("destToken", SRC),
        ("srcAmount", "1001"),
        ("destAmount", "989"),
        ("deadline", 1_800_000_001),
        ("kind", 1),
        ("partnerAndFee", "514"),
        ("partnerAndFee", str(1 << 8)),
        ("permit", "0x01"),
        ("metadata", "0x01"),
        ("bridge", NO_BRIDGE | {"destinationChainId": 5}),
        ("bridge", NO_BRIDGE | {"protocolData": "0x01"}),
        ("bridge", NO_BRIDGE | {"protocolSelector": "0x36d75ffa"}),
        ("bridge", NO_BRIDGE | {"outputToken": DEST}),
        ("bridge", NO_BRIDGE | {"more": 1}),
        ("bridge", None),
        ("more", "1"),
    ],
)
def test_any_other_order_is_refused(ask: Ask, member: str, value: Any) -> None:
    told = ask("typed", toSign={"domain": DOMAIN, "value": VALUE | {member: value}}, terms=TERMS)
    assert told["refused"].endswith("Nothing was signed.")


@pytest.mark.parametrize(("member", "value"), [("chainId", 1), ("verifyingContract", OWNER)])
def test_another_domain_is_refused(ask: Ask, member: str, value: Any) -> None:
    told = ask("typed", toSign={"domain": DOMAIN | {member: value}, "value": VALUE}, terms=TERMS)
    assert f"domain.{member}" in told["refused"]


@_quick
@given(total=st.integers(24, 2**128), slices=st.integers(2, 24), per_slice=st.integers(1, 2**128))
def test_slices_are_those_of_the_command_line(ask: Ask, total: int, slices: int, per_slice: int) -> None:
    schedule = Schedule(slices, 60)
    told = ask("slices", side="BUY", total=str(total), slices=slices, perSlice=str(per_slice))
    most = schedule.most_of(total, per_slice)
    assert told == {
        "cut": str(schedule.slice_of(total)),
        "most": str(most),
        "perSlice": str(schedule.most_per_slice(total, most)),
    }


# --- Files ---------------------------------------------------------------------------------------------

CONSOLE = Path(cambist.engine.console.__file__).resolve().parent
_IMPORT = re.compile(r'^import [^;]* from "([^"]+)"', re.MULTILINE)


def imports_of(script: Path) -> set[Path]:
    """The scripts that a script of the venue's page imports, and those that those import; not `import()`."""
    found: set[Path] = set()
    todo = [script]
    while todo:
        here = todo.pop()
        for name in _IMPORT.findall(here.read_text()):
            is_shared = name.startswith("/")
            there = CONSOLE / name.removeprefix("/console/") if is_shared else here.parent / Path(name).name
            if there not in found:
                found.add(there)
                todo.append(there)
    return found


def test_the_page_names_the_scripts_of_its_first_view_so_that_they_come_at_once() -> None:
    page = (CONSOLE / "venue" / "index.html").read_text()
    named = set(re.findall(r'<link rel="modulepreload" href="/console/([^"]+)">', page))
    wanted = {
        str(path.relative_to(CONSOLE)).removeprefix("venue/")
        for path in imports_of(CONSOLE / "venue" / "app.js")
    }
    assert named == wanted


def test_a_visitor_reads_less_than_60_kilobytes_of_scripts() -> None:
    """Compressed; each further page adds at most 25 kB."""
    app = CONSOLE / "venue" / "app.js"
    first = {app, *imports_of(app)}
    assert _packed(first) < 60_000
    for page in re.findall(r'import\("([^"]+)"\)', app.read_text()):
        assert _packed({*imports_of(app.parent / page), app.parent / page} - first) < 25_000, page


def _packed(scripts: set[Path]) -> int:
    return sum(len(gzip.compress(script.read_bytes(), mtime=0)) for script in scripts)
