// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface IVault {
    function previewWithdraw(uint256 assets) external view returns (uint256 shares);
    function withdraw(uint256 assets, address receiver, address owner) external returns (uint256 shares);
    function redeem(uint256 shares, address receiver, address owner) external returns (uint256 assets);
}

/// Calls of yield vaults (ERC-4626) that nobody vouches for: of bounded gas, and whatever they return, no more than a
/// word of it is read. What a vault did is measured by balances.
library Vaults {
    /// Most gas of one call of a vault.
    uint256 private constant GAS_MAX = 3_000_000;

    /// The shares that the vault says it takes for `assets`; the largest number where it does not say.
    function sharesFor(address vault, uint256 assets) internal view returns (uint256 shares) {
        bytes memory data = abi.encodeCall(IVault.previewWithdraw, (assets));
        assembly ("memory-safe") {
            let done := staticcall(GAS_MAX, vault, add(data, 32), mload(data), 0, 32)
            switch and(done, gt(returndatasize(), 31))
            case 0 { shares := not(0) }
            default { shares := mload(0) }
        }
    }

    /// Give up `shares` of this contract's.
    function redeem(address vault, uint256 shares) internal returns (bool) {
        return call(vault, abi.encodeCall(IVault.redeem, (shares, address(this), address(this))));
    }

    /// Take `assets` for shares of this contract's.
    function withdraw(address vault, uint256 assets) internal returns (bool) {
        return call(vault, abi.encodeCall(IVault.withdraw, (assets, address(this), address(this))));
    }

    function call(address vault, bytes memory data) private returns (bool done) {
        assembly ("memory-safe") {
            done := call(GAS_MAX, vault, 0, add(data, 32), mload(data), 0, 0)
        }
    }
}
