// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {FeeVault} from "contracts/FeeVault.sol";
import {Coin, Proof} from "./Proof.sol";

/// Fees that the vault keeps, from any state in which it holds what it owes.
/// @custom:halmos --default-array-lengths 1
contract FeeVaultProofs is Proof {
    FeeVault private vault;
    Coin private coin;

    function setUp() public {
        vault = FeeVault(deployed("FeeVault", abi.encode(address(0x11))));
        coin = new Coin();
    }

    /// No account takes a fee, its own neither.
    /// @custom:bound 120 s
    function check_NobodyTakesAFee(address account, address caller) public {
        svm.enableSymbolicStorage(address(vault));
        svm.enableSymbolicStorage(address(coin));
        uint256 before = vault.owed(account, address(coin));
        callAs(caller, svm.createCalldata("FeeVault"));
        assert(vault.owed(account, address(coin)) >= before);
    }

    /// An account's claim becomes less by its own call alone: no owner, collector or other account takes it.
    /// @custom:widths full; lists of one; from any state
    /// @custom:bound 120 s
    function check_OnlyItsAccountTakesAFee(address account, address token, address caller) public {
        svm.enableSymbolicStorage(address(vault));
        svm.enableSymbolicStorage(address(coin));
        vm.assume(caller != account);
        uint256 before = vault.owed(account, token);
        callAs(caller, svm.createCalldata("FeeVault"));
        assert(vault.owed(account, token) >= before);
    }

    /// A claim sends what the account may claim, no more and no less, and takes it off what the vault owes.
    /// @custom:widths full; one token; from any state
    /// @custom:bound 120 s
    /// @custom:quick
    function check_AClaimPaysWhatIsOwed(address account, address receiver) public {
        svm.enableSymbolicStorage(address(vault));
        svm.enableSymbolicStorage(address(coin));
        vm.assume(receiver != address(vault));
        uint256 owed = vault.owed(account, address(coin));
        uint256 total = vault.totalOwed(address(coin));
        uint256 held = coin.balanceOf(address(vault));
        uint256 had = coin.balanceOf(receiver);
        address[] memory tokens = new address[](1);
        tokens[0] = address(coin);
        vm.prank(account);
        vault.claim(tokens, receiver);
        assert(coin.balanceOf(address(vault)) == held - owed);
        assert(coin.balanceOf(receiver) == had + owed);
        assert(vault.owed(account, address(coin)) == 0);
        assert(vault.totalOwed(address(coin)) == total - owed);
    }

    /// The vault holds what it owes after every call, and a credit is what has arrived at most.
    /// @custom:widths full; lists of one; from any state in which it holds what it owes
    /// @custom:bound 120 s
    function check_TheVaultHoldsWhatItOwes(address caller) public {
        svm.enableSymbolicStorage(address(vault));
        svm.enableSymbolicStorage(address(coin));
        vm.assume(caller != address(vault));
        vm.assume(vault.totalOwed(address(coin)) <= coin.balanceOf(address(vault)));
        callAs(caller, svm.createCalldata("FeeVault"));
        assert(vault.totalOwed(address(coin)) <= coin.balanceOf(address(vault)));
    }

    /// Only a collector credits, and it credits no other account.
    /// @custom:widths full; from any state
    /// @custom:bound 120 s
    /// @custom:quick
    function check_OnlyCollectorsCredit(address caller, address account, uint256 sent, address other) public {
        svm.enableSymbolicStorage(address(vault));
        svm.enableSymbolicStorage(address(coin));
        vm.assume(other != account);
        bool collects = vault.isCollector(caller);
        uint256 before = vault.owed(other, address(coin));
        vm.prank(caller);
        vault.credit(account, address(coin), sent);
        assert(collects);
        assert(vault.owed(other, address(coin)) == before);
    }

    function callAs(address caller, bytes memory data) private {
        vm.prank(caller);
        (bool done,) = address(vault).call(data);
        vm.assume(done);
    }
}
