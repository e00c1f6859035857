// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Math} from "../lib/Math.sol";
import {Tokens} from "../lib/Tokens.sol";
import {DevToken} from "./DevToken.sol";

/// A yield vault (ERC-4626) whose shares gain value by whatever is sent to it.
contract DevVault is DevToken {
    error TransferFailed();

    event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
    event Withdraw(
        address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares
    );

    address public immutable asset;

    constructor(address asset_, string memory name_, string memory symbol_) DevToken(name_, symbol_, 18) {
        asset = asset_;
    }

    function totalAssets() public view returns (uint256) {
        return Tokens.balance(asset, address(this));
    }

    function convertToShares(uint256 assets) public view returns (uint256) {
        return totalSupply == 0 ? assets : assets * totalSupply / totalAssets();
    }

    function convertToAssets(uint256 shares) public view returns (uint256) {
        return totalSupply == 0 ? shares : shares * totalAssets() / totalSupply;
    }

    function previewRedeem(uint256 shares) public view virtual returns (uint256) {
        return convertToAssets(shares);
    }

    /// Rounded up, as the standard says.
    function previewWithdraw(uint256 assets) public view virtual returns (uint256) {
        return totalSupply == 0 ? assets : Math.ceilDiv(assets * totalSupply, totalAssets());
    }

    function deposit(uint256 assets, address receiver) external returns (uint256 shares) {
        shares = convertToShares(assets);
        if (!Tokens.pull(asset, msg.sender, address(this), assets)) revert TransferFailed();
        totalSupply += shares;
        balanceOf[receiver] += shares;
        emit Transfer(address(0), receiver, shares);
        emit Deposit(msg.sender, receiver, assets, shares);
    }

    function redeem(uint256 shares, address receiver, address owner) external returns (uint256 assets) {
        assets = previewRedeem(shares);
        give(assets, shares, receiver, owner);
    }

    function withdraw(uint256 assets, address receiver, address owner) external returns (uint256 shares) {
        shares = previewWithdraw(assets);
        give(assets, shares, receiver, owner);
    }

    function give(uint256 assets, uint256 shares, address receiver, address owner) internal virtual {
        if (msg.sender != owner) useAllowance(owner, shares);
        uint256 balance = balanceOf[owner];
        if (balance < shares) revert InsufficientBalance(owner, balance);
        balanceOf[owner] = balance - shares;
        totalSupply -= shares;
        emit Transfer(owner, address(0), shares);
        if (!Tokens.send(asset, receiver, assets)) revert TransferFailed();
        emit Withdraw(msg.sender, receiver, owner, assets, shares);
    }
}
