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

    /// Delta's caller of handlers.
    address public immutable caller;
    IRfq public immutable rfq;

    constructor(address caller_, IRfq rfq_) {
        caller = caller_;
        rfq = rfq_;
    }

    /// @inheritdoc IOrderHandler
    /// @param data signed orders of makers that buy the source for the vault's asset (IRfq.OrderInfo[]); none where the
    /// source is the asset.
    function handle(Handled calldata handled, bytes calldata data) external {
        if (msg.sender != caller) revert NotDeltas();
        address vault = handled.destToken;
        address asset = IDepositVault(vault).asset();
        if (asset != handled.srcToken) {
            allow(handled.srcToken, address(rfq), handled.given);
            rfq.tryBatchFillOrderTakerAmount(abi.decode(data, (IRfq.OrderInfo[])), handled.given, address(this));
            allow(handled.srcToken, address(rfq), 0);
        }
        uint256 assets = Tokens.balance(asset, address(this));
        allow(asset, vault, assets);
        IDepositVault(vault).deposit(assets, handled.deliverTo);
        allow(asset, vault, 0);
    }

    function allow(address token, address spender, uint256 amount) private {
        if (!Tokens.approve(token, spender, amount)) revert NotAllowed(token);
    }
}
