"""A maker's operator at the console of the maker's admin listener, in a browser."""

from pathlib import Path

from support.browser import Browser
from support.makers.maker_role import ENVIRON, firm_request, running_maker, settings_of

ADMIN = '\n[maker.admin]\nport = 0\ndomains = ["operator"]\n'


async def test_an_operator_sees_prices_and_stops_the_maker(tmp_path: Path, browser: Browser) -> None:
    async with running_maker(tmp_path, settings_of(ADMIN)) as (maker, venue):
        base = f"http://127.0.0.1:{venue.admin_port}"
        assert (await venue.ask("POST", "/firm", firm_request())).status == 200
        assert (await venue.ask("POST", "/firm", firm_request(takerAmount=str(10**30)))).status != 200
        visit = await browser.look("console_maker", base, "operator", "key-2", ENVIRON["OPERATOR_SECRET"])
        assert not maker.switch.halts.text()
    refusals = [line for line in visit.complaints if "the server responded with a status of" in line]
    assert list(visit.complaints) == refusals
    assert visit.foreign == ()
    report = visit.told
    assert "WETH" not in report["open"]
    assert "X-AUTH-SIGNATURE" in report["refused"]
    assert report["pairs"][0][:2] == ["WETH/USDC", "quoted"]
    assert {token[0] for token in report["tokens"]} == {"WETH", "USDC", "DAI"}
    assert [line[0] for line in report["quotes"]] == ["WETH/USDC", "WETH/USDC"]
    assert report["quotes"][1][2:4] == ["1 WETH", "2,500 USDC"]
    assert report["quotes"][1][6] == "signed"
    assert report["quotes"][0][6] == report["refusals"][0][0]
    assert report["tokens"][1][3] == "2,500"  # promised in the live quote
    assert report["reasons"]
    assert report["question"].startswith("Stop everything?")
    assert report["kept"] is True
    assert report["faults"] == []
    assert report["overflowing"] == []
