// Bound of a wait for one event, in milliseconds: PATIENCE_S of tests/support/patience.py.
export const WAIT_MS = 45_000 * Number(process.env.TEST_PATIENCE ?? 1);
