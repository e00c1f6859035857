// Calls a function again and again while the page is visible.

/**
 * Call `look` now and every `everyMs` while the page is visible, until the returned function is called.
 * @param {(signal: AbortSignal) => Promise<void>} look
 * @param {number} everyMs
 */
export function poll(look, everyMs) {
  const stopped = new AbortController();
  let waiting = 0;
  const again = async () => {
    clearTimeout(waiting);
    if (!document.hidden) await look(stopped.signal).catch((error) => { if (!stopped.signal.aborted) throw error; });
    if (!stopped.signal.aborted) waiting = setTimeout(again, everyMs);
  };
  again();
  return () => { stopped.abort(); clearTimeout(waiting); };
}
