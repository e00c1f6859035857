// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {AgentCaller} from "../AgentCaller.sol";
import {Bridges} from "../Bridges.sol";
import {FeeVault} from "../FeeVault.sol";
import {RfqExecutor} from "../RfqExecutor.sol";
import {DeltaOrders} from "./DeltaOrders.sol";
import {DeltaState} from "./DeltaState.sol";
import {Eip712} from "./Eip712.sol";
import {Math} from "./Math.sol";
import {Permits} from "./Permits.sol";
import {Proceeds} from "./Proceeds.sol";
import {Signatures} from "./Signatures.sol";
import {IWETH, Tokens} from "./Tokens.sol";

/// The one way in which every kind of order is settled: a kind's settler makes a Part of it, and here the part is
/// checked, taken, traded and paid.
///
/// Delta runs settlers as its own code. A settler that is called itself has no relayer, is paused, and nobody allows it
/// anything.
abstract contract Settling is DeltaState {
    /// A batch of RFQ fills, where `target` is the RFQ contract: `data` is what the executor decodes, `gas` is not
    /// looked at. Else a call of the agent's as it stands, by its caller, with at most `gas`.
    struct Step {
        address target;
        uint256 gas;
        bytes data;
    }

    /// How a part is traded. `promised` is what the agent's bid promised: the least that arrives (sale) or the most that
    /// is spent (purchase). `receiver`, zero for the executor, gets what is given: of a sale all, of a purchase
    /// `srcGiven`, at most the part's maximum; of shares of a vault `srcGiven`, or all they are worth where that is 0; of
    /// a bridge-only order `srcGiven`, which pays for gas: the rest enters the bridge.
    /// Steps deliver here, to Delta; `agent` is the id of the agent whose caller makes the calls. What the executor has
    /// of `leftovers` goes to the owner, afterwards and also before: a unit that somebody left there would make a step
    /// fail that gives all there is to orders that take no more.
    struct Execution {
        uint256 promised;
        uint256 srcGiven;
        Step[] steps;
        address[] leftovers;
        bytes32 agent;
        address receiver;
    }

    /// The contracts that a Delta and its settlers have in common.
    struct Places {
        RfqExecutor executor;
        FeeVault feeVault;
        IWETH weth;
        address permit2;
        Bridges bridges;
    }

    /// One settlement of an order.
    struct Part {
        bytes32 orderHash;
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 srcAmount; // sale: what is given; purchase: the most
        uint256 destAmount; // sale: the least; purchase: what is wanted; for a bridge, what has to enter it
        uint256 expected; // of what is not fixed; 0 for none
        uint256 promised; // of what is not fixed
        uint256 taken; // of the source, by now
        uint256 srcPermitted; // what a Permit2 transfer is signed for: the order's whole source amount
        uint256 deadline;
        uint256 nonce;
        uint256 partnerAndFee;
        uint256 filled; // of the order, this part included
        uint256 deposited; // of native tokens, drawn from the deposit and not taken
        bool isPurchase;
        bool isBridgeOnly; // the source itself enters the bridge
        bool isHere; // the source is taken to here: of a purchase, and of a bridge-only order
        bool isClosed;
        bool isWhole; // the order's only part
        uint256 bridge; // where the order's bridge is in the calldata; 0 for none
        uint256 leastOutput; // that has to arrive by the bridge
    }

    uint8 private constant BUY = 1; // 0 for a sale

    RfqExecutor internal immutable executor;
    FeeVault internal immutable feeVault;
    IWETH internal immutable weth;
    address internal immutable permit2;
    Bridges private immutable bridges;
    address private immutable rfq;
    /// The digest of the constructor's arguments: Delta takes settlers with its own alone.
    bytes32 public immutable terms;

    constructor(string memory name, string memory version, Places memory places) Eip712(name, version) {
        executor = places.executor;
        feeVault = places.feeVault;
        weth = places.weth;
        permit2 = places.permit2;
        bridges = places.bridges;
        rfq = address(places.executor.rfq());
        terms = keccak256(abi.encode(name, version, places));
    }

    modifier onlyRelayer() {
        if (!isRelayer[msg.sender]) revert NotRelayer();
        _;
    }

    function settlePart(
        Part memory part,
        bytes calldata permit,
        bytes calldata signature,
        Execution calldata execution
    ) internal returns (uint256 spent, uint256 received) {
        begin(part, signature, execution);
        address src = wrapped(part.srcToken);
        sweep(part, execution);
        uint256 srcBefore = Tokens.balance(src, address(this));
        uint256 destBefore = Tokens.balance(wrapped(part.destToken), address(this));
        take(part, src, part.isHere ? address(this) : receiverOf(execution), permit);
        return settleTaken(part, src, execution, srcBefore, destBefore);
    }

    /// Trade what is taken, which is with the receiver by now or here (`isHere`), and pay by what is here beyond what was
    /// here before.
    function settleTaken(
        Part memory part,
        address src,
        Execution calldata execution,
        uint256 srcBefore,
        uint256 destBefore
    ) internal returns (uint256 spent, uint256 received) {
        if (part.isHere) {
            address receiver = receiverOf(execution);
            send(src, receiver, execution.srcGiven);
            trade(part, execution);
            if (receiver == address(executor)) collectAny(src, address(this));
        } else {
            trade(part, execution);
        }
        // Before anybody is paid, who could have the Router trade what is still with the executor.
        for (uint256 i = 0; i < execution.leftovers.length; i++) {
            address token = execution.leftovers[i];
            collectAny(token, token == src ? address(this) : part.owner);
        }
        address dest = wrapped(part.destToken);
        received = Tokens.balance(dest, address(this)) - destBefore;
        uint256 unspent = Tokens.balance(src, address(this)) - srcBefore;
        if (part.isBridgeOnly) {
            // What is here is one amount, and counts once.
            if (part.isPurchase) received = Math.least(received, part.destAmount);
            unspent -= received;
        }
        return finish(part, received, unspent);
    }

    function receiverOf(Execution calldata execution) internal view returns (address) {
        return execution.receiver == address(0) ? address(executor) : execution.receiver;
    }

    /// Take the steps in turn; one that fails undoes all.
    function trade(Part memory part, Execution calldata execution) internal {
        AgentCaller caller;
        for (uint256 i = 0; i < execution.steps.length; i++) {
            Step calldata step = execution.steps[i];
            if (step.target == rfq) {
                executor.fill(part.owner, i, step.data);
                continue;
            }
            if (address(caller) == address(0)) {
                if (execution.agent == HANDLERS) revert InvalidAgent();
                caller = callerOf(execution.agent);
            }
            caller.call(part.orderHash, i, step.target, step.gas, step.data);
        }
    }

    function callerOf(bytes32 agent) internal returns (AgentCaller caller) {
        caller = AgentCaller(agentCaller(agent));
        if (address(caller).code.length > 0) return caller;
        new AgentCaller{salt: agent}();
        emit AgentCallerCreated(agent, address(caller));
    }

    // --- One part: what is checked, taken, paid ---

    /// Counts `amount` of an order as settled, of its source where it sells, of its destination where it buys.
    function partOf(DeltaOrders.Order calldata order, bytes32 orderHash, uint256 amount, address beneficiary)
        internal
        returns (Part memory part)
    {
        uint256 kind = order.kind;
        if (kind > BUY) revert InvalidKind(order.kind);
        part.isPurchase = kind == BUY;
        part.orderHash = orderHash;
        part.owner = order.owner;
        part.beneficiary = beneficiary;
        part.srcToken = order.srcToken;
        part.destToken = order.destToken;
        part.deadline = order.deadline;
        part.nonce = order.nonce;
        part.partnerAndFee = order.partnerAndFee;
        part.srcPermitted = order.srcAmount;
        uint256 whole = kind == BUY ? order.destAmount : part.srcPermitted;
        part.filled = count(part.owner, part.nonce, orderHash, amount, whole);
        part.isClosed = part.filled == whole;
        part.isWhole = amount == whole;
        if (kind == BUY) {
            part.srcAmount = part.srcPermitted * amount / whole;
            part.destAmount = amount;
            part.expected = order.expectedAmount * amount / whole;
        } else {
            part.srcAmount = amount;
            part.destAmount = Math.ceilDiv(order.destAmount * amount, whole);
            part.expected = Math.ceilDiv(order.expectedAmount * amount, whole);
        }
    }

    /// Names order and parties of a part.
    function setParties(
        Part memory part,
        bytes32 orderHash,
        address owner,
        address beneficiary,
        address srcToken,
        address destToken
    ) internal pure {
        part.orderHash = orderHash;
        part.owner = owner;
        part.beneficiary = beneficiary;
        part.srcToken = srcToken;
        part.destToken = destToken;
    }

    /// Turns the amounts that have to arrive by `bridge` into amounts that have to enter it. The expected amount of a
    /// purchase is of its source, and stays.
    function addBridge(Part memory part, DeltaOrders.Bridge calldata bridge) internal view {
        if (part.destToken == Tokens.NATIVE) revert InvalidBridge();
        uint256 at;
        assembly ("memory-safe") {
            at := bridge
        }
        part.bridge = at;
        part.leastOutput = part.destAmount;
        uint256 expected = part.isPurchase ? 0 : part.expected;
        (part.destAmount, expected) = bridges.inputsOf(bridge, part.leastOutput, expected);
        if (!part.isPurchase) part.expected = expected;
    }

    /// Counts `amount` of `whole` as settled. Returns how much is settled then.
    function count(address owner, uint256 nonce, bytes32 orderHash, uint256 amount, uint256 whole)
        internal
        returns (uint256 filled)
    {
        uint256 before = progressOf(owner, nonce, orderHash);
        if (amount == 0) revert InvalidAmount();
        if (amount > whole - before) revert Overfilled(whole - before);
        filled = before + amount;
        advance(owner, nonce, orderHash, before, filled, filled == whole);
    }

    /// Checks what does not depend on the trade.
    function begin(Part memory part, bytes calldata signature, Execution calldata execution) internal {
        if (block.timestamp > part.deadline) revert OrderExpired();
        bool isSigned = signature.length == 0
            ? isPreSigned[part.owner][part.orderHash]
            : Signatures.isBy(part.owner, part.orderHash, signature);
        if (!isSigned) revert InvalidSignature();
        if (part.beneficiary == address(0)) part.beneficiary = part.owner;
        address src = wrapped(part.srcToken);
        uint256 given = execution.srcGiven;
        part.isHere = part.isPurchase;
        if (src == wrapped(part.destToken)) {
            if (part.bridge == 0) revert SameToken();
            part.isBridgeOnly = part.isHere = true;
            given += part.destAmount;
        }
        part.taken = part.isPurchase
            ? Proceeds.mostOfPurchase(given, part.expected, part.srcAmount, part.partnerAndFee)
            : part.srcAmount;
        countGiven(src, part.taken);
        part.promised = execution.promised;
    }

    /// Take the part's source from its owner, or from the owner's deposit: there, of a purchase, as much as it may cost,
    /// so that the rest goes back with what was not spent.
    function take(Part memory part, address src, address to, bytes calldata permit) internal {
        uint256 amount = part.taken;
        if (part.srcToken == Tokens.NATIVE) {
            part.deposited = draw(part.owner, amount, part.srcAmount) - amount;
            weth.deposit{value: amount}();
            if (to != address(this)) send(src, to, amount);
        } else if (
            !Permits.take(permit2, src, part.owner, to, amount, part.srcPermitted, part.deadline, permit)
        ) {
            revert PullFailed(src);
        }
    }

    /// Fees, the beneficiary, what was not spent, the event. `received` is before fees, `unspent` is here.
    function finish(Part memory part, uint256 received, uint256 unspent)
        internal
        returns (uint256 spent, uint256 arrived)
    {
        if (part.isPurchase) {
            if (received < part.destAmount) revert BelowMinimum(received, part.destAmount);
            unspent = finishPurchase(part, wrapped(part.srcToken), unspent);
        } else {
            received = finishSale(part, wrapped(part.destToken), received);
        }
        spent = Math.lessOrNone(part.taken, unspent);
        giveBack(part, unspent);
        arrived = part.bridge == 0 ? pay(part, received) : handOver(part, received);
        checkPromise(part, spent, arrived);
        emit OrderSettled(
            part.orderHash,
            part.owner,
            part.nonce,
            part.srcToken,
            part.destToken,
            spent,
            arrived,
            part.filled,
            part.isClosed
        );
    }

    /// The promise that ranked the bid binds, whatever the steps did meanwhile.
    function checkPromise(Part memory part, uint256 spent, uint256 arrived) private pure {
        if (part.isPurchase ? spent > part.promised : arrived < part.promised) {
            revert PromiseBroken(part.orderHash, part.isPurchase ? spent : arrived, part.promised);
        }
    }

    /// Tokens that somebody left with the executor go to the owner, before the steps.
    function sweep(Part memory part, Execution calldata execution) internal {
        for (uint256 i = 0; i < execution.leftovers.length; i++) collectAny(execution.leftovers[i], part.owner);
    }

    function collectAny(address token, address to) internal {
        if (Tokens.balance(token, address(executor)) > 0) executor.collect(token, to);
    }

    /// Returns what is the user's of what a sale brought.
    function finishSale(Part memory part, address dest, uint256 received) private returns (uint256 net) {
        Proceeds.Cut memory cut =
            Proceeds.ofSale(received, part.expected, part.destAmount, part.partnerAndFee);
        cut.share = shareOfParts(part, cut);
        net = received - cut.fee - 2 * cut.share;
        if (net < part.destAmount) revert BelowMinimum(net, part.destAmount);
        accrue(part, dest, cut);
    }

    /// Returns what is the owner's of what a purchase left. It costs nothing where more came back than was given, as
    /// anyone may leave tokens with the executor.
    function finishPurchase(Part memory part, address src, uint256 unspent) private returns (uint256 rest) {
        Proceeds.Cut memory cut = Proceeds.ofPurchase(
            Math.lessOrNone(part.taken, unspent), part.expected, part.srcAmount, part.partnerAndFee
        );
        cut.share = shareOfParts(part, cut);
        rest = unspent - cut.fee - 2 * cut.share;
        accrue(part, src, cut);
    }

    /// A part's share of surplus is bounded by that of all parts so far: parts that were worse than expected count.
    function shareOfParts(Part memory part, Proceeds.Cut memory cut) private returns (uint256 share) {
        share = cut.share;
        if (part.isWhole || !Proceeds.isShared(part.expected, part.partnerAndFee)) return share;
        Netted memory so = netted[part.orderHash];
        int256 surplus = so.surplus + cut.surplus;
        uint256 most = surplus > 0 ? uint256(surplus) / 2 : 0;
        share = Math.least(share, Math.lessOrNone(most, so.shared));
        if (surplus != int128(surplus)) revert InvalidAmount();
        netted[part.orderHash] = Netted(int128(surplus), so.shared + uint128(share));
    }

    /// The unspent source goes to the owner as it came.
    function giveBack(Part memory part, uint256 unspent) private {
        if (part.srcToken == Tokens.NATIVE) {
            if (unspent > 0) weth.withdraw(unspent);
            uint256 amount = unspent + part.deposited;
            if (amount > 0) giveNative(part.owner, amount);
        } else if (unspent > 0) {
            send(part.srcToken, part.owner, unspent);
        }
    }

    function accrue(Part memory part, address token, Proceeds.Cut memory cut) private {
        if (cut.fee == 0 && cut.share == 0) return;
        address partner = Proceeds.partnerOf(part.partnerAndFee);
        if (partner == address(0)) partner = protocol;
        accrueTo(part.orderHash, partner, token, cut.fee, false);
        accrueTo(part.orderHash, partner, token, cut.share, true);
        if (cut.share > 0) accrueTo(part.orderHash, protocol, token, cut.share, true);
    }

    function accrueTo(bytes32 orderHash, address receiver, address token, uint256 amount, bool isSurplus)
        private
    {
        if (amount == 0) return;
        send(token, address(feeVault), amount);
        emit FeeAccrued(orderHash, receiver, token, feeVault.credit(receiver, token, amount), isSurplus);
    }

    /// Returns what arrived, which is less than was sent where a token takes a fee on transfers.
    function pay(Part memory part, uint256 amount) private returns (uint256 arrived) {
        address to = part.beneficiary;
        if (part.destToken == Tokens.NATIVE) {
            weth.withdraw(amount);
            if (!Tokens.sendNative(to, amount, Tokens.NATIVE_GAS)) revert NativeTransferFailed(to);
            return amount;
        }
        uint256 before = Tokens.balance(part.destToken, to);
        send(part.destToken, to, amount);
        arrived = Tokens.balance(part.destToken, to) - before;
        if (arrived < part.destAmount) revert BelowMinimum(arrived, part.destAmount);
    }

    /// The bridge promises what arrives, which binds as what is received here does. Returns what it was given.
    function handOver(Part memory part, uint256 amount) private returns (uint256) {
        DeltaOrders.Bridge calldata bridge;
        uint256 at = part.bridge;
        assembly ("memory-safe") {
            bridge := at
        }
        send(part.destToken, address(bridges), amount);
        Bridges.Transfer memory transfer =
            Bridges.Transfer(part.owner, part.beneficiary, part.destToken, amount, bridge);
        (uint256 output, uint256 id) = bridges.carry(transfer);
        if (output < part.leastOutput) revert BelowMinimum(output, part.leastOutput);
        emit OrderBridged(
            part.orderHash,
            bridge.protocolSelector,
            bridge.destinationChainId,
            bridge.outputToken,
            amount,
            output,
            id
        );
        return amount;
    }

    function send(address token, address to, uint256 amount) internal {
        if (!Tokens.send(token, to, amount)) revert TransferFailed(token);
    }

    function wrapped(address token) internal view returns (address) {
        return token == Tokens.NATIVE ? address(weth) : token;
    }
}
