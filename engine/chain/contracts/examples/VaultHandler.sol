// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IOrderHandler} from "../IOrderHandler.sol";
import {IRfq} from "../IRfq.sol";
import {Tokens} from "../lib/Tokens.sol";

interface IDepositVault {
    function asset() external view returns (address);
    function deposit(uint256 assets, address receiver) external returns (uint256 shares);
}

/// Sells what an order gives to makers, and deposits what they pay into a vault (ERC-4626), for an order whose destination
/// is that vault's shares: from any token to yield, in one signature and without gas of the owner's.
///
/// It has no owner and keeps nothing: what it is given leaves in the same call, and every allowance ends with it, so that
/// a vault or a maker of one order can reach nothing of another's.
contract VaultHandler is IOrderHandler {
    error NotDeltas();
    error NotAllowed(address token);
    error NotOpen();
    error OtherTokens();

    /// Delta's caller of handlers.
    address public immutable caller;
    IRfq public immutable rfq;

    constructor(address caller_, IRfq rfq_) {
        caller = caller_;
        rfq = rfq_;
    }

    /// @inheritdoc IOrderHandler
    /// @param data signed orders of makers that buy the source for the vault's asset (IRfq.OrderInfo[]), for any taker: a
    /// quote for this contract would be anybody's. None where the source is the asset.
    function handle(Handled calldata handled, bytes calldata data) external {
        if (msg.sender != caller) revert NotDeltas();
        address vault = handled.destToken;
        address asset = IDepositVault(vault).asset();
        if (asset != handled.srcToken) sell(handled, asset, abi.decode(data, (IRfq.OrderInfo[])));
        uint256 assets = Tokens.balance(asset, address(this));
        allow(asset, vault, assets);
        IDepositVault(vault).deposit(assets, handled.deliverTo);
        allow(asset, vault, 0);
        if (Tokens.balance(asset, address(this)) > 0) revert OtherTokens();
    }

    function sell(Handled calldata handled, address asset, IRfq.OrderInfo[] memory fills) private {
        for (uint256 i = 0; i < fills.length; i++) {
            IRfq.Order memory order = fills[i].order;
            if (order.taker != address(0)) revert NotOpen();
            if (order.makerAsset != asset || order.takerAsset != handled.srcToken) revert OtherTokens();
        }
        allow(handled.srcToken, address(rfq), handled.given);
        rfq.tryBatchFillOrderTakerAmount(fills, handled.given, address(this));
        allow(handled.srcToken, address(rfq), 0);
    }

    function allow(address token, address spender, uint256 amount) private {
        if (!Tokens.approve(token, spender, amount)) revert NotAllowed(token);
    }
}
