// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {DeltaOrders} from "./lib/DeltaOrders.sol";
import {Math} from "./lib/Math.sol";
import {Permits} from "./lib/Permits.sol";
import {Settling} from "./lib/Settling.sol";
import {Tokens} from "./lib/Tokens.sol";
import {Vaults} from "./lib/Vaults.sol";

/// Settles sales of what rests in vaults, for Delta, which runs this code as its own.
///
/// Who is trusted with what: nobody, where this code is called itself: it is paused, has no owner and no relayer, and no
/// user allows it anything. As Delta's code it checks the signed terms, and trusts relayers, agents and makers as Delta
/// does. A vault is its order's owner's choice and trusted by nobody else: it can lose that owner's shares, or make the
/// settlement fail, and it is called with nothing of anybody's but these shares.
contract ProductiveSettler is Settling {
    using DeltaOrders for *;

    constructor(string memory name, string memory version, Places memory places) Settling(name, version, places) {}

    /// As Delta says it; reverts as Delta's function.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param amount raw units: of the shares where the order sells shares, else of the source.
    /// @param execution how it is traded, as the winning bid says.
    /// @return spent raw units of the source that the shares gave and that was sold, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleProductive(
        DeltaOrders.ProductiveOrder calldata order,
        bytes calldata signature,
        uint256 amount,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        Part memory part = partOf(order, amount);
        begin(part, signature, execution);
        sweep(part, execution);
        address src = wrapped(part.srcToken);
        uint256 srcBefore = Tokens.balance(src, address(this));
        uint256 destBefore = Tokens.balance(wrapped(part.destToken), address(this));
        redeem(part, order, amount);
        part.taken = Tokens.balance(src, address(this)) - srcBefore;
        uint256 given = order.useShares ? execution.srcGiven : amount;
        if (part.taken < Math.most(given, 1)) revert RedemptionFailed(order.strategy);
        if (order.useShares) countGiven(src, part.taken);
        // What shares are worth beyond what was bid on is the owner's: a vault can earn between bid and block.
        if (!part.isBridgeOnly) send(src, receiverOf(execution), given == 0 ? part.taken : given);
        (spent, received) = settleTaken(part, src, execution, srcBefore, destBefore);
        gasUsed -= gasleft();
    }

    /// Counts `amount` as settled. The source of a part of shares is known once they are redeemed.
    function partOf(DeltaOrders.ProductiveOrder calldata order, uint256 amount)
        private
        returns (Part memory part)
    {
        bytes32 orderHash = digestOf(order.structHash());
        uint256 whole = order.useShares ? order.shares : order.srcAmount;
        uint256 filled = count(order.owner, order.nonce, orderHash, amount, whole);
        setParties(part, orderHash, order.owner, order.beneficiary, order.srcToken, order.destToken);
        part.srcPermitted = order.shares;
        part.srcAmount = order.useShares ? 0 : amount;
        part.destAmount = Math.ceilDiv(order.destAmount * amount, whole);
        part.expected = Math.ceilDiv(order.expectedAmount * amount, whole);
        part.deadline = order.deadline;
        part.nonce = order.nonce;
        part.partnerAndFee = order.partnerAndFee;
        part.filled = filled;
        part.isClosed = filled == whole;
        part.isWhole = amount == whole;
        if (!order.bridge.isSameChain()) addBridge(part, order.bridge);
    }

    /// Takes the owner's shares and has the vault give the source for them. Shares that it did not take go back.
    function redeem(Part memory part, DeltaOrders.ProductiveOrder calldata order, uint256 amount) private {
        address vault = order.strategy;
        if (vault == wrapped(part.srcToken) || vault == wrapped(part.destToken)) revert SameToken();
        uint256 shares = amount;
        if (!order.useShares) {
            shares = Vaults.sharesFor(vault, amount);
            if (shares == type(uint256).max) revert RedemptionFailed(vault);
            uint256 most = Math.ceilDiv(order.shares * amount, order.srcAmount);
            if (shares > most) revert TooManyShares(shares, most);
        }
        uint256 before = Tokens.balance(vault, address(this));
        if (
            !Permits.take(
                permit2,
                vault,
                part.owner,
                address(this),
                shares,
                part.srcPermitted,
                part.deadline,
                order.permit
            )
        ) revert PullFailed(vault);
        bool done = order.useShares ? Vaults.redeem(vault, shares) : Vaults.withdraw(vault, amount);
        if (!done) revert RedemptionFailed(vault);
        uint256 left = Tokens.balance(vault, address(this)) - before;
        if (left > 0) send(vault, part.owner, left);
    }
}
