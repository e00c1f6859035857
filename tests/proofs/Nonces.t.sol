// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Counting} from "contracts/Opened.sol";
import {Venue} from "./Venue.sol";

/// Nonces and amounts of orders, from any state of Delta's storage.
contract NonceProofs is Venue {
    Counting private counting;

    function setUp() public {
        deployVenue();
        counting = Counting(deployed("Counting", abi.encode(places)));
    }

    /// No order is settled, with no nonce.
    /// @custom:bound 60 s
    function check_NoNonceSettles(
        address account,
        uint256 nonce,
        bytes32 orderHash,
        uint256 amount,
        uint256 whole
    ) public {
        svm.enableSymbolicStorage(address(counting));
        assert(!isSettled(account, nonce, orderHash, amount, whole));
    }

    /// No order is settled with a used nonce, and the nonce stays used.
    /// @custom:widths full; from any state
    /// @custom:bound 60 s
    /// @custom:quick
    function check_UsedNonceSettlesNothing(
        address account,
        uint256 nonce,
        bytes32 orderHash,
        uint256 amount,
        uint256 whole
    ) public {
        svm.enableSymbolicStorage(address(counting));
        vm.assume(counting.isNonceUsed(account, nonce));
        assert(!isSettled(account, nonce, orderHash, amount, whole));
    }

    /// A used nonce stays used whatever is settled or invalidated after it, by any owner.
    /// @custom:widths full; from any state
    /// @custom:bound 60 s
    function check_UsedNonceStaysUsed(
        address account,
        uint256 nonce,
        address other,
        uint256 otherNonce,
        bytes32 orderHash,
        uint256 amount,
        uint256 whole,
        bool settles
    ) public {
        svm.enableSymbolicStorage(address(counting));
        vm.assume(counting.isNonceUsed(account, nonce));
        if (settles) counting.settleSome(other, otherNonce, orderHash, amount, whole);
        else counting.invalidateOne(other, otherNonce);
        assert(counting.isNonceUsed(account, nonce));
    }

    /// A settlement or an invalidation leaves every other nonce as it is.
    /// @custom:widths full; from any state
    /// @custom:bound 60 s
    function check_OtherNoncesStayAsTheyAre(
        address account,
        uint256 nonce,
        address other,
        uint256 otherNonce,
        bytes32 orderHash,
        uint256 amount,
        uint256 whole,
        bool settles
    ) public {
        svm.enableSymbolicStorage(address(counting));
        vm.assume(account != other || nonce != otherNonce);
        (bytes32 order, bool isUsed,) = counting.orderState(account, nonce, orderHash);
        if (settles) counting.settleSome(other, otherNonce, orderHash, amount, whole);
        else counting.invalidateOne(other, otherNonce);
        (bytes32 later, bool isUsedLater,) = counting.orderState(account, nonce, orderHash);
        assert(order == later && isUsed == isUsedLater);
    }

    /// A nonce that belongs to an order settles no other order.
    /// @custom:widths full; from any state
    /// @custom:bound 60 s
    /// @custom:quick
    function check_BegunNonceSettlesItsOrderAlone(
        address account,
        uint256 nonce,
        bytes32 orderHash,
        uint256 amount,
        uint256 whole
    ) public {
        svm.enableSymbolicStorage(address(counting));
        (bytes32 order,,) = counting.orderState(account, nonce, orderHash);
        vm.assume(order != 0 && order >> 1 != orderHash >> 1);
        assert(!isSettled(account, nonce, orderHash, amount, whole));
    }

    /// All parts of an order together are its whole at most: what is settled stays within it, and the last part uses up
    /// the nonce.
    /// @custom:widths full; hashes above 1; from any state within the whole
    /// @custom:bound 60 s
    function check_PartsAreTheWholeAtMost(
        address account,
        uint256 nonce,
        bytes32 orderHash,
        uint256 amount,
        uint256 whole
    ) public {
        // A nonce is known to be an order's by all bits of the hash but the last: zero stands for no order.
        vm.assume(orderHash >> 1 != 0);
        svm.enableSymbolicStorage(address(counting));
        uint256 before = counting.settledOf(account, nonce, orderHash);
        vm.assume(before < whole);
        uint256 filled = counting.settleSome(account, nonce, orderHash, amount, whole);
        assert(filled == before + amount && filled > before && filled <= whole);
        assert(counting.isNonceUsed(account, nonce) == (filled == whole));
        if (filled < whole) assert(counting.settledOf(account, nonce, orderHash) == filled);
    }

    function isSettled(address account, uint256 nonce, bytes32 orderHash, uint256 amount, uint256 whole)
        private
        returns (bool done)
    {
        (done,) = address(counting).call(
            abi.encodeCall(Counting.settleSome, (account, nonce, orderHash, amount, whole))
        );
    }
}
