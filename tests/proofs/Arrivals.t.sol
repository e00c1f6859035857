// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Arrivals} from "contracts/Arrivals.sol";
import {Coin} from "./Proof.sol";
import {Venue} from "./Venue.sol";

/// Tokens that a bridge has delivered.
contract ArrivalProofs is Venue {
    Arrivals private arrivals;
    Coin private coin;

    function setUp() public {
        deployDelta(false);
        arrivals = Arrivals(
            payable(deployed("Arrivals", abi.encode(address(delta), places.executor, places.weth)))
        );
        coin = new Coin();
    }

    /// Before the time in the terms, nobody has tokens paid out.
    /// @custom:bound 60 s
    function check_NobodyIsPaidOutEarly(Arrivals.Terms memory terms, address caller, uint256 amount, uint256 time)
        public
    {
        vm.assume(time <= terms.until);
        assert(!isPaidOut(terms, caller, amount, time));
    }

    /// Before the time in the terms, only the beneficiary has tokens paid out.
    /// @custom:widths full
    /// @custom:bound 120 s
    /// @custom:quick
    function check_OnlyTheBeneficiaryIsPaidOutEarly(
        Arrivals.Terms memory terms,
        address caller,
        uint256 amount,
        uint256 time
    ) public {
        vm.assume(caller != terms.beneficiary && time <= terms.until);
        assert(!isPaidOut(terms, caller, amount, time));
    }

    /// A pay-out sends all that has arrived to the beneficiary, and nothing of any other account.
    /// @custom:widths full
    /// @custom:bound 120 s
    /// @custom:quick
    function check_APayOutIsTheBeneficiarys(
        Arrivals.Terms memory terms,
        address caller,
        uint256 amount,
        address other,
        uint256 others
    ) public {
        address arrival = arrivals.arrivalOf(terms);
        vm.assume(terms.beneficiary != arrival && other != arrival && other != terms.beneficiary);
        coin.mint(arrival, amount);
        coin.mint(other, others);
        vm.prank(caller);
        uint256 paid = arrivals.payOut(terms, address(coin));
        assert(paid == amount);
        assert(coin.balanceOf(terms.beneficiary) == amount);
        assert(coin.balanceOf(other) == others);
    }

    /// A swap of an arrival by an account that is no relayer is refused for that reason.
    /// @custom:widths full; without fills
    /// @custom:bound 120 s
    /// @custom:quick
    function check_OnlyRelayersSwapArrivals(Arrivals.Terms memory terms, address caller, uint256 amount) public {
        vm.assume(caller != relayer);
        coin.mint(arrivals.arrivalOf(terms), amount);
        vm.prank(caller);
        (bool done, bytes memory reason) = address(arrivals).call(
            abi.encodeCall(Arrivals.swap, (terms, new bytes[](0), new address[](0)))
        );
        assert(!done && bytes4(reason) == Arrivals.NotRelayer.selector);
    }

    function isPaidOut(Arrivals.Terms memory terms, address caller, uint256 amount, uint256 time)
        private
        returns (bool done)
    {
        vm.warp(time);
        coin.mint(arrivals.arrivalOf(terms), amount);
        vm.prank(caller);
        (done,) = address(arrivals).call(abi.encodeCall(Arrivals.payOut, (terms, address(coin))));
    }
}
