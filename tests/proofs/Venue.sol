// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Bridges} from "contracts/Bridges.sol";
import {Delta} from "contracts/Delta.sol";
import {ExternalSettler} from "contracts/ExternalSettler.sol";
import {FeeVault} from "contracts/FeeVault.sol";
import {ProductiveSettler} from "contracts/ProductiveSettler.sol";
import {RfqExecutor} from "contracts/RfqExecutor.sol";
import {SwapSettler} from "contracts/SwapSettler.sol";
import {TwapSettler} from "contracts/TwapSettler.sol";
import {Settling} from "contracts/lib/Settling.sol";
import {IWETH} from "contracts/lib/Tokens.sol";
import {Proof} from "./Proof.sol";

/// All contracts of a venue, of an owner, a pauser, a proposed owner and a relayer of whom nothing is known but that
/// they are distinct.
abstract contract Venue is Proof {
    address internal constant PERMIT2 = address(0x22);
    address internal constant PROTOCOL = address(0x33);

    address internal owner;
    address internal proposed;
    address internal pauser;
    address internal relayer;
    Settling.Places internal places;
    Delta internal delta;

    function deployVenue() internal {
        owner = svm.createAddress("owner");
        proposed = svm.createAddress("proposed");
        pauser = svm.createAddress("pauser");
        relayer = svm.createAddress("relayer");
        vm.assume(owner != proposed && owner != pauser && owner != relayer);
        vm.assume(proposed != pauser && proposed != relayer && pauser != relayer);
        address rfq = deployed("Rfq", abi.encode("Proof"));
        places.executor = RfqExecutor(deployed("RfqExecutor", abi.encode(rfq, owner)));
        places.feeVault = FeeVault(deployed("FeeVault", abi.encode(owner)));
        places.weth = IWETH(deployed("DevWeth", ""));
        places.permit2 = PERMIT2;
        places.bridges = Bridges(deployed("Bridges", abi.encode(address(0), address(0))));
    }

    /// Delta, with the four roles, paused or not.
    function deployDelta(bool isPaused) internal {
        deployVenue();
        bytes memory terms = abi.encode("Proof", "1", places);
        Delta.Settlers memory settlers = Delta.Settlers({
            swap: SwapSettler(deployed("SwapSettler", terms)),
            twap: TwapSettler(deployed("TwapSettler", terms)),
            productive: ProductiveSettler(deployed("ProductiveSettler", terms)),
            handled: ExternalSettler(deployed("ExternalSettler", terms))
        });
        bytes memory arguments = abi.encode("Proof", "1", places, PROTOCOL, owner, settlers);
        delta = Delta(payable(deployed("Delta", arguments)));
        vm.prank(owner);
        delta.setPauser(pauser);
        vm.prank(owner);
        delta.proposeOwner(proposed);
        vm.prank(owner);
        delta.setRelayer(relayer, true);
        vm.prank(owner);
        delta.setPaused(isPaused);
    }

    /// Whether calldata is of a function for relayers.
    function isSettlement(bytes memory data) internal pure returns (bool) {
        bytes4 selector = bytes4(data);
        return selector == Delta.settle.selector || selector == Delta.settleCrossed.selector
            || selector == Delta.settleTwap.selector || selector == Delta.settleTwapBuy.selector
            || selector == Delta.settleProductive.selector || selector == Delta.settleExternal.selector;
    }
}
