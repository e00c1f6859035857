"""The roles that run as processes, each assembled from the other folders; no role imports another.

In: settings. Out: a venue, a market maker or an agent that serves, and its metrics.
Reading order: `telemetry/`, `venue/`, `maker/`, `agent/`.
"""
