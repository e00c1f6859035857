// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IRfq} from "contracts/IRfq.sol";
import {Cuts, Railed} from "contracts/Opened.sol";
import {Rfq} from "contracts/Rfq.sol";
import {Proceeds} from "contracts/lib/Proceeds.sol";
import {Coin, Proof, Wallet} from "./Proof.sol";

/// Claims that are false, each close to a true one: every run has to refute all of them, by a counterexample.
contract FalseClaims is Proof {
    Rfq private rfq;
    Coin private made;
    Coin private taken;
    Railed private railed;
    Cuts private cuts;
    address private agreeing;

    function setUp() public {
        rfq = Rfq(deployed("Rfq", abi.encode("Proof")));
        made = new Coin();
        taken = new Coin();
        railed = Railed(deployed("Railed", ""));
        cuts = Cuts(deployed("Cuts", ""));
        agreeing = address(new Wallet(true));
    }

    /// Any account's cancellation ends an order.
    /// @custom:bound 60 s
    function check_AnybodyCancelsAnOrder(IRfq.Order memory order, address caller) public {
        order.maker = agreeing;
        prepare(order);
        bytes32 orderHash = rfq.getOrderHash(order);
        vm.prank(caller);
        rfq.cancelOrder(orderHash);
        assert(!isFilled(order, ""));
    }

    /// No signature of a key fills an order.
    /// @custom:bound 60 s
    function check_NoKeySignsAnOrder(IRfq.Order memory order) public {
        vm.assume(order.maker == address(0x44));
        prepare(order);
        assert(!isFilled(order, svm.createBytes(65, "signature")));
    }

    /// Two hours give the cap of one at most.
    /// @custom:bound 60 s
    function check_TwoHoursGiveOneCap(address token, uint112 first, uint112 second, uint32 later) public {
        railed.setPaused(false);
        railed.setCap(token, 1000);
        railed.give(token, first);
        vm.warp(later);
        railed.give(token, second);
        assert(uint256(first) + second <= 1000);
    }

    /// A capped share is half a percent of the minimum at most, whatever was expected.
    /// @custom:bound 120 s
    function check_CappedSharesAreOfTheMinimum(
        uint8 received,
        uint8 expected,
        uint8 minimum,
        uint256 partnerAndFee
    ) public view {
        vm.assume(partnerAndFee & Proceeds.CAP_SURPLUS != 0);
        (, uint256 share) = cuts.ofSale(received, expected, minimum, partnerAndFee);
        assert(2 * share * 100 <= minimum);
    }

    function prepare(IRfq.Order memory order) private {
        order.makerAsset = address(made);
        order.takerAsset = address(taken);
        made.mint(order.maker, type(uint256).max);
        taken.mint(address(this), type(uint256).max);
    }

    function isFilled(IRfq.Order memory order, bytes memory signature) private returns (bool done) {
        (done,) = address(rfq).call(abi.encodeCall(Rfq.fillOrder, (order, signature)));
    }
}
