// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {AgentCaller} from "../AgentCaller.sol";
import {BridgeErrors} from "./Bridging.sol";
import {Deposits} from "./Deposits.sol";
import {Eip712} from "./Eip712.sol";
import {NonReentrant} from "./NonReentrant.sol";
import {Nonces} from "./Nonces.sol";
import {ProtocolFees} from "./ProtocolFees.sol";
import {Rails} from "./Rails.sol";

/// The storage of Delta, for Delta itself and for the settlers whose code it runs as its own. Both have to inherit this
/// first and settlers may add nothing: the compilation compares the layouts.
abstract contract DeltaState is Rails, Eip712, NonReentrant, Nonces, Deposits, ProtocolFees, BridgeErrors {
    error InvalidSignature();
    error NotRelayer();
    error OrderExpired();
    error InvalidAmount();
    error SameToken();
    error Overfilled(uint256 left);
    error BelowMinimum(uint256 received, uint256 minimum);
    error PromiseBroken(bytes32 orderHash, uint256 amount, uint256 promised);
    error PullFailed(address token);
    error TransferFailed(address token);
    error InvalidKind(uint8 kind);
    error InvalidCrossings(uint256 count);
    error InvalidSlices();
    error TooEarly(uint256 notBefore);
    error InvalidAgent();
    error InvalidSteps();
    error RedemptionFailed(address vault);
    error TooManyShares(uint256 shares, uint256 most);

    event OrderSettled(
        bytes32 indexed orderHash,
        address indexed owner,
        uint256 nonce,
        address srcToken,
        address destToken,
        uint256 spent,
        uint256 received,
        uint256 filled,
        bool isClosed
    );
    event OrderBridged(
        bytes32 indexed orderHash,
        bytes4 protocolSelector,
        uint256 destinationChainId,
        address outputToken,
        uint256 amount,
        uint256 output,
        uint256 id
    );
    event FeeAccrued(
        bytes32 indexed orderHash, address indexed receiver, address token, uint256 amount, bool isSurplus
    );
    event AgentCallerCreated(bytes32 indexed agent, address caller);

    /// The id of the caller that calls the handlers of external orders: no agent's.
    bytes32 internal constant HANDLERS = 0;

    /// Whether an account may settle orders.
    mapping(address relayer => bool) public isRelayer;
    /// Whether an owner has signed an order by a call, under the order's digest.
    mapping(address owner => mapping(bytes32 orderHash => bool)) public isPreSigned;
    mapping(bytes32 orderHash => Netted) internal netted;

    /// Of the parts of an order so far: what they were better than expected, less what they were worse, and the share
    /// that partner and protocol got each.
    struct Netted {
        int128 surplus;
        uint128 shared;
    }

    bytes32 private immutable agentCallerCode = keccak256(type(AgentCaller).creationCode);

    /// The address of the caller of an agent's, there yet or not.
    /// @param agent the keccak-256 of the name that the venue gives the agent.
    /// @return the address of the agent's AgentCaller.
    function agentCaller(bytes32 agent) public view returns (address) {
        return address(
            uint160(uint256(keccak256(abi.encodePacked(hex"ff", address(this), agent, agentCallerCode))))
        );
    }
}
