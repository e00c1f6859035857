// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Delta} from "contracts/Delta.sol";
import {Router} from "contracts/Router.sol";
import {DeltaState} from "contracts/lib/DeltaState.sol";
import {Rails} from "contracts/lib/Rails.sol";
import {Tokens} from "contracts/lib/Tokens.sol";
import {Venue} from "./Venue.sol";

/// The powers over Delta: of its owner, its pauser and its relayers. A call is one of any function, with any arguments.
/// @custom:halmos --default-bytes-lengths 65 --default-array-lengths 1
contract DeltaRoleProofs is Venue {
    bool private wasPaused;

    function setUp() public {
        wasPaused = svm.createBool("wasPaused");
        deployDelta(wasPaused);
    }

    /// One function at least of those for the owner and the proposed owner refuses both.
    /// @custom:bound 60 s
    function check_SomePowerIsNobodys() public {
        bytes4[8] memory all = powers();
        bytes32 one = bytes32(uint256(1));
        for (uint256 i = 0; i < all.length; i++) {
            address caller = i < 7 ? owner : address(1);
            if (!callAs(caller, bytes.concat(all[i], one, one))) return;
        }
        assert(false);
    }

    /// No call of an account that is neither owner nor relayer changes a relayer, a cap, the pauser or the receiver of fees. The
    /// pauser stops Delta and cannot let it go on; the proposed owner alone accepts, and the owner alone proposes.
    /// @custom:widths full; lists of one, texts of 65 bytes
    /// @custom:bound 300 s
    function check_OnlyTheOwnerSetsDelta(address caller, address account, address token) public {
        vm.assume(caller != owner && caller != relayer);
        bool settles = delta.isRelayer(account);
        callAs(caller, svm.createCalldata("Delta"));
        assert(delta.isRelayer(account) == settles);
        assert(delta.capOf(token) == 0);
        assert(delta.pauser() == pauser);
        assert(delta.protocol() == PROTOCOL);
        assert(delta.isPaused() == wasPaused || caller == pauser && delta.isPaused());
        bool accepted = delta.owner() == caller && delta.proposedOwner() == address(0);
        assert(caller == proposed && accepted || delta.owner() == owner && delta.proposedOwner() == proposed);
    }

    /// A relayer has no power of Delta's owner: each function for the owner refuses it.
    /// @custom:widths full
    /// @custom:bound 60 s
    /// @custom:quick
    function check_ARelayerSetsNothing(bytes4 selector, bytes32 first, bytes32 second) public {
        bytes4[8] memory all = powers();
        vm.assume(
            selector == all[0] || selector == all[1] || selector == all[2] || selector == all[3]
                || selector == all[4] || selector == all[5] || selector == all[6] || selector == all[7]
        );
        assert(!callAs(relayer, bytes.concat(selector, first, second)));
    }

    /// Every settlement of an account that is no relayer is refused for that reason, that of Delta's owner too.
    /// @custom:widths full; lists of one, texts of 65 bytes
    /// @custom:bound 120 s
    /// @custom:quick
    function check_OnlyRelayersSettle(address caller) public {
        vm.assume(caller != relayer);
        bytes memory data = svm.createCalldata("Delta");
        vm.assume(isSettlement(data));
        vm.prank(caller);
        (bool done, bytes memory reason) = address(delta).call(data);
        assert(!done && bytes4(reason) == DeltaState.NotRelayer.selector);
    }

    /// The functions for the owner; the last one is for the account that the one before proposes.
    function powers() private view returns (bytes4[8] memory) {
        return [
            Delta.setRelayer.selector,
            Delta.setProtocol.selector,
            delta.setCap.selector,
            delta.setPauser.selector,
            delta.setPaused.selector,
            delta.pause.selector,
            delta.proposeOwner.selector,
            delta.acceptOwner.selector
        ];
    }

    function callAs(address caller, bytes memory data) private returns (bool done) {
        vm.prank(caller);
        (done,) = address(delta).call(data);
    }
}

/// The powers over a paused Router, the executor and the vault.
/// @custom:halmos --default-bytes-lengths 65 --default-array-lengths 1
contract OwnerProofs is Venue {
    Router private router;
    address private known;

    function setUp() public {
        deployVenue();
        known = svm.createAddress("known");
        router = Router(
            payable(
                deployed(
                    "Router",
                    abi.encode(places.executor, places.feeVault, places.weth, PERMIT2, PROTOCOL, owner)
                )
            )
        );
        vm.prank(owner);
        router.setPauser(pauser);
        vm.prank(owner);
        router.proposeOwner(proposed);
        vm.prank(owner);
        places.executor.setCaller(known, true);
        vm.prank(owner);
        places.executor.proposeOwner(proposed);
        vm.prank(owner);
        places.feeVault.setCollector(known, true);
        vm.prank(owner);
        places.feeVault.proposeOwner(proposed);
    }

    /// No call changes anything of the executor's, the owner's and its callers' neither.
    /// @custom:bound 60 s
    function check_NobodyUsesTheExecutor(address caller) public {
        assert(!callAs(caller, address(places.executor), svm.createCalldata("RfqExecutor")));
    }

    /// No call of an account that is not the owner lets a paused Router go on, or changes its settings.
    /// @custom:widths full; lists of one, texts of 65 bytes
    /// @custom:bound 120 s
    function check_OnlyTheOwnerSetsTheRouter(address caller, address token) public {
        vm.assume(caller != owner);
        callAs(caller, address(router), svm.createCalldata("Router"));
        assert(router.isPaused());
        assert(router.capOf(token) == 0);
        assert(router.pauser() == pauser);
        assert(router.protocol() == PROTOCOL);
        assert(router.owner() == owner || caller == proposed && router.owner() == proposed);
    }

    /// A paused Router refuses every swap for that reason.
    /// @custom:widths full; without hops
    /// @custom:bound 120 s
    /// @custom:quick
    function check_APausedRouterSwapsNothing(address caller, Router.Swap memory swap, bool isSale) public {
        vm.assume(swap.deadline >= block.timestamp && swap.srcToken != swap.destToken);
        vm.assume(swap.srcToken != Tokens.NATIVE && swap.destToken != Tokens.NATIVE);
        swap.hops = new Router.Hop[](0);
        swap.permit = "";
        bytes memory data = isSale
            ? abi.encodeCall(Router.swapExactIn, (swap))
            : abi.encodeCall(Router.swapExactOut, (swap));
        vm.prank(caller);
        (bool done, bytes memory reason) = address(router).call(data);
        assert(!done && bytes4(reason) == Rails.Paused.selector);
    }

    /// No call of an account that is neither owner nor caller moves a token of the executor's, or changes its callers.
    /// @custom:widths full; lists of one, texts of 65 bytes
    /// @custom:bound 120 s
    /// @custom:quick
    function check_OnlyCallersUseTheExecutor(address caller, address account) public {
        vm.assume(caller != owner && caller != known);
        bool calls = places.executor.isCaller(account);
        bytes memory data = svm.createCalldata("RfqExecutor");
        bool done = callAs(caller, address(places.executor), data);
        assert(places.executor.isCaller(account) == calls);
        assert(!done || caller == proposed && places.executor.owner() == proposed);
    }

    /// No call of an account that is not the owner changes the vault's collectors.
    /// @custom:widths full; lists of one
    /// @custom:bound 120 s
    function check_OnlyTheOwnerNamesCollectors(address caller, address account) public {
        vm.assume(caller != owner && caller != known);
        bool collects = places.feeVault.isCollector(account);
        callAs(caller, address(places.feeVault), svm.createCalldata("FeeVault"));
        assert(places.feeVault.isCollector(account) == collects);
        assert(places.feeVault.owner() == owner || caller == proposed && places.feeVault.owner() == proposed);
    }

    function callAs(address caller, address target, bytes memory data) private returns (bool done) {
        vm.prank(caller);
        (done,) = target.call(data);
    }
}
