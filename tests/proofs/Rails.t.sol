// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Railed} from "contracts/Opened.sol";
import {Proof} from "./Proof.sol";

/// Caps and the pause, from any state: paused or not, with any caps and amounts given.
contract RailProofs is Proof {
    Railed private railed;

    function setUp() public {
        railed = Railed(deployed("Railed", ""));
        railed.setPaused(svm.createBool("isPaused"));
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

    /// Nothing is given, in a pause or without one.
    /// @custom:bound 60 s
    function check_NothingIsGiven(address token, uint256 amount, uint64 time, bool isOneCall) public {
        vm.warp(time);
        svm.enableSymbolicStorage(address(railed));
        assert(!given(token, amount, isOneCall));
    }

    /// An hour's settlements give the cap at most, however many they are, and nothing more once the cap is lowered below
    /// what they gave.
    /// @custom:widths full; from any state; until the year 492,000
    /// @custom:bound 60 s
    /// @custom:quick
    function check_AnHourGivesItsCapAtMost(address token, uint256 amount, uint64 time) public {
        vm.assume(time / 1 hours <= type(uint32).max);
        vm.warp(time);
        svm.enableSymbolicStorage(address(railed));
        uint256 cap = railed.capOf(token);
        uint256 before = railed.givenOf(token);
        railed.give(token, amount);
        uint256 given = railed.givenOf(token);
        assert(cap == type(uint256).max || given == before + amount);
        assert(cap == type(uint256).max || given <= cap || amount == 0);
    }

    /// An amount within the rest of the hour's cap is not refused.
    /// @custom:widths full; from any state; until the year 492,000
    /// @custom:bound 60 s
    /// @custom:quick
    function check_TheRestOfACapIsUsable(address token, uint256 amount, uint64 time) public {
        vm.assume(time / 1 hours <= type(uint32).max);
        vm.warp(time);
        svm.enableSymbolicStorage(address(railed));
        vm.assume(!railed.isPaused());
        uint256 cap = railed.capOf(token);
        uint256 before = railed.givenOf(token);
        vm.assume(before <= cap && amount <= cap - before);
        (bool done,) = address(railed).call(abi.encodeCall(Railed.give, (token, amount)));
        assert(done);
    }

    /// The settlements of one token take nothing of another token's cap.
    /// @custom:widths full; from any state
    /// @custom:bound 60 s
    /// @custom:quick
    function check_CapsAreOfOneToken(address token, address other, uint256 amount, uint64 time) public {
        vm.assume(token != other);
        vm.warp(time);
        svm.enableSymbolicStorage(address(railed));
        uint256 cap = railed.capOf(other);
        uint256 before = railed.givenOf(other);
        railed.give(token, amount);
        assert(railed.capOf(other) == cap && railed.givenOf(other) == before);
    }

    /// Nothing is given while the contract is paused.
    /// @custom:widths full; from any state
    /// @custom:bound 60 s
    /// @custom:quick
    function check_NothingIsGivenInAPause(address token, uint256 amount, uint64 time, bool isOneCall) public {
        vm.warp(time);
        svm.enableSymbolicStorage(address(railed));
        vm.assume(railed.isPaused());
        assert(!given(token, amount, isOneCall));
    }

    /// One call gives its token's cap at most.
    /// @custom:widths full; from any state
    /// @custom:bound 60 s
    /// @custom:quick
    function check_OneCallGivesItsCapAtMost(address token, uint256 amount) public {
        svm.enableSymbolicStorage(address(railed));
        railed.checkOne(token, amount);
        assert(amount <= railed.capOf(token));
    }

    /// A new contract is paused, and gives nothing of a token whose cap nobody has set.
    /// @custom:widths full
    /// @custom:bound 60 s
    /// @custom:quick
    function check_ANewContractGivesNothing(address token, uint256 amount, uint64 time) public {
        vm.warp(time);
        Railed fresh = Railed(deployed("Railed", ""));
        assert(fresh.isPaused());
        fresh.setPaused(false);
        fresh.give(token, amount);
        assert(amount == 0);
    }

    function given(address token, uint256 amount, bool isOneCall) private returns (bool done) {
        bytes memory data = isOneCall
            ? abi.encodeCall(Railed.checkOne, (token, amount))
            : abi.encodeCall(Railed.give, (token, amount));
        (done,) = address(railed).call(data);
    }
}
