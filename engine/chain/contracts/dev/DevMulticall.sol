// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Many calls in one, with the function that clients call on Multicall3.
contract DevMulticall {
    error CallFailed(uint256 call);

    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (results[i].success, results[i].returnData) = calls[i].target.call(calls[i].callData);
            if (!results[i].success && !calls[i].allowFailure) revert CallFailed(i);
        }
    }
}
