// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {DeltaOrders} from "./lib/DeltaOrders.sol";
import {Pools} from "./lib/Pools.sol";
import {Settling} from "./lib/Settling.sol";
import {Signatures} from "./lib/Signatures.sol";
import {Tokens} from "./lib/Tokens.sol";

/// Settles swap and limit orders for Delta, which runs this code as its own.
///
/// Who is trusted with what: nobody, where this code is called itself: it is paused, has no owner and no relayer, and no
/// user allows it anything. As Delta's code it checks the signed terms, and trusts relayers, agents and makers as Delta
/// does.
contract SwapSettler is Settling {
    using DeltaOrders for *;
    using Pools for Pools.Pool[];

    /// One of several orders that are settled against each other: what `settle` takes of each, how much of its
    /// destination it is `paid`, its fee and shares of surplus included, and how much of its source, of what all have
    /// given, goes to the execution's receiver before its steps.
    struct Crossing {
        DeltaOrders.Order order;
        bytes signature;
        uint256 amount;
        Execution execution;
        uint256 paid;
        uint256 traded;
    }

    uint256 private constant CROSSINGS_MAX = 8;

    constructor(string memory name, string memory version, Places memory places) Settling(name, version, places) {}

    /// As Delta says it; reverts as Delta's function.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param amount raw units: of the source of a sale, of the destination of a purchase.
    /// @param execution how it is traded, as the winning bid says.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settle(
        DeltaOrders.Order calldata order,
        bytes calldata signature,
        uint256 amount,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        Part memory part = partOf(order, digestOf(order.structHash()), amount, order.beneficiary);
        if (!order.bridge.isSameChain()) addBridge(part, order.bridge);
        (spent, received) = settlePart(part, order.permit, signature, execution);
        gasUsed -= gasleft();
    }

    /// As Delta says it; reverts as Delta's function.
    /// @param crossings what `settle` takes of each order, and what each is paid.
    /// @return spent raw units of its source that each order's owner gave, in the order of the crossings.
    /// @return received raw units of its destination that each order's beneficiary got, in the same order.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleCrossed(Crossing[] calldata crossings)
        external
        onlyRelayer
        nonReentrant
        returns (uint256[] memory spent, uint256[] memory received, uint256 gasUsed)
    {
        gasUsed = gasleft();
        if (crossings.length < 2 || crossings.length > CROSSINGS_MAX) revert InvalidCrossings(crossings.length);
        Part[] memory parts = beginAll(crossings);
        Pools.Pool[] memory pools = poolsOf(parts);
        uint256[] memory unspent = takeAll(crossings, parts, pools);
        tradeAll(crossings, parts, pools);
        (spent, received) = finishAll(crossings, parts, pools, unspent);
        gasUsed -= gasleft();
    }

    /// As Delta says it.
    /// @param agent the keccak-256 of the name that the venue gives it.
    /// @return the address of the agent's AgentCaller.
    function createAgentCaller(bytes32 agent) external returns (address) {
        return address(callerOf(agent));
    }

    // --- Orders against each other ---

    function beginAll(Crossing[] calldata crossings) private returns (Part[] memory parts) {
        parts = new Part[](crossings.length);
        for (uint256 i = 0; i < parts.length; i++) {
            Crossing calldata crossing = crossings[i];
            DeltaOrders.Order calldata order = crossing.order;
            if (!order.bridge.isSameChain()) revert BridgeNotEnabled();
            Part memory part =
                partOf(order, digestOf(order.structHash()), crossing.amount, order.beneficiary);
            begin(part, crossing.signature, crossing.execution);
            sweep(part, crossing.execution);
            parts[i] = part;
        }
    }

    /// One of each token.
    function poolsOf(Part[] memory parts) private view returns (Pools.Pool[] memory pools) {
        pools = Pools.forOrders(parts.length);
        for (uint256 i = 0; i < parts.length; i++) {
            pools.open(wrapped(parts[i].destToken));
            pools.open(wrapped(parts[i].srcToken));
        }
    }

    /// All give to this contract, where nobody who is called meanwhile can reach it. Returns what each keeps here.
    function takeAll(Crossing[] calldata crossings, Part[] memory parts, Pools.Pool[] memory pools)
        private
        returns (uint256[] memory unspent)
    {
        unspent = new uint256[](parts.length);
        for (uint256 i = 0; i < parts.length; i++) {
            Part memory part = parts[i];
            Pools.Pool memory pool = pools.find(wrapped(part.srcToken));
            uint256 before = Tokens.balance(pool.token, address(this));
            take(part, pool.token, address(this), crossings[i].order.permit);
            uint256 arrived = Tokens.balance(pool.token, address(this)) - before;
            uint256 given = part.isPurchase ? crossings[i].execution.srcGiven : arrived;
            unspent[i] = arrived - given;
            pool.amount += given;
        }
    }

    /// The executor gives back leftovers: to the pools, and of tokens without a pool to the owner whose steps left
    /// them. Without any step, nothing moves.
    function tradeAll(Crossing[] calldata crossings, Part[] memory parts, Pools.Pool[] memory pools) private {
        uint256 steps = 0;
        for (uint256 i = 0; i < parts.length; i++) steps += crossings[i].execution.steps.length;
        if (steps == 0) return;
        for (uint256 i = 0; pools[i].token != address(0); i++) {
            pools[i].kept = Tokens.balance(pools[i].token, address(this)) - pools[i].amount;
        }
        for (uint256 i = 0; i < parts.length; i++) {
            Execution calldata execution = crossings[i].execution;
            address src = wrapped(parts[i].srcToken);
            uint256 traded = crossings[i].traded;
            pools.draw(src, traded);
            if (traded > 0) send(src, receiverOf(execution), traded);
            trade(parts[i], execution);
            for (uint256 j = 0; j < execution.leftovers.length; j++) {
                address token = execution.leftovers[j];
                collectAny(token, pools.has(token) ? address(this) : parts[i].owner);
            }
        }
        for (uint256 i = 0; pools[i].token != address(0); i++) {
            pools[i].amount = Tokens.balance(pools[i].token, address(this)) - pools[i].kept;
        }
    }

    function finishAll(
        Crossing[] calldata crossings,
        Part[] memory parts,
        Pools.Pool[] memory pools,
        uint256[] memory unspent
    ) private returns (uint256[] memory spent, uint256[] memory received) {
        spent = new uint256[](parts.length);
        received = new uint256[](parts.length);
        for (uint256 i = 0; i < parts.length; i++) {
            received[i] = crossings[i].paid;
            pools.draw(wrapped(parts[i].destToken), received[i]);
        }
        for (uint256 i = 0; pools[i].token != address(0); i++) {
            if (pools[i].amount > 0) spread(pools[i], parts, received, unspent);
        }
        for (uint256 i = 0; i < parts.length; i++) {
            (spent[i], received[i]) = finish(parts[i], received[i], unspent[i]);
        }
    }

    /// Give the rest of a pool to the first order that wants its token, else back to the first that gave it.
    function spread(
        Pools.Pool memory pool,
        Part[] memory parts,
        uint256[] memory received,
        uint256[] memory unspent
    ) private view {
        for (uint256 i = 0; i < parts.length; i++) {
            if (wrapped(parts[i].destToken) == pool.token) {
                received[i] += pool.amount;
                return;
            }
        }
        uint256 giver = 0;
        while (wrapped(parts[giver].srcToken) != pool.token) giver++;
        unspent[giver] += pool.amount;
    }
}
