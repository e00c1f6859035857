"""The roles and the capabilities that they share.

In: settings. Out: a running venue, maker, agent, devnet or command.
Reading order: `lifecycle`, `process/`, `server/`, `admission/`, `safety/`, `store/`, `events/`, `chain/`,
    `routing/`, `served/`, `api/`, `console/`, `orders/`, `market/`, `otc/`, `delta/`, `telemetry/`, `venue/`,
    `maker/`, `agent/`, `client/`, `conformance/`, `dev/`, `cli/`.
"""
