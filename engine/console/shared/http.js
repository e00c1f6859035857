// Calls of the JSON API, and its server-sent events.

const PAUSE_MS = { first: 500, most: 15_000 };
const ANSWER_MS = 30_000;
const SILENCE_MS = 45_000; // three beats of a stream

/** A refusal of the API, or an answer that did not come. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 without an answer
   * @param {string} type
   * @param {string} details
   */
  constructor(status, type, details) {
    super(details || type);
    this.name = "ApiError";
    this.status = status;
    this.type = type;
  }

  /** Whether the same request will be refused again. */
  get isFinal() {
    return [400, 401, 403, 404].includes(this.status);
  }
}

/**
 * The JSON of an answer. It has to come within ANSWER_MS, since a connection may be lost without a word. Its type is that
 * of the path in the API's description (`ApiAnswer`, which tests make of /openapi.json).
 * @template {string} P
 * @template {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal, accept?: number[]}} O
 * @param {P} path
 * @param {O} [options] `accept`: further statuses
 * @returns {Promise<ApiAnswer<P, O>>}
 */
export async function ask(path, options) {
  const { body, headers = {}, signal, accept = [] } = options ?? /** @type {any} */ ({});
  const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  /** @type {Record<string, string>} */ const type = body === undefined ? {} : { "content-type": "application/json" };
  const bound = AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...(signal ? [signal] : [])]);
  const lost = (/** @type {unknown} */ error) => {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "Unreachable", "The server does not answer. Check that it runs.");
  };
  const response = await fetch(path, { ...sent, headers: { ...type, ...headers }, signal: bound, cache: "no-store" }).catch(lost);
  const told = await response.json().catch((error) => (bound.aborted || response.ok ? lost(error) : {}));
  if (response.ok || accept.includes(response.status)) return told;
  throw new ApiError(response.status, told.errorType ?? `Status ${response.status}`, told.details ?? told.message ?? told.error ?? "");
}

/**
 * @typedef {object} Listener
 * @property {(name: string, data: any) => void} onEvent
 * @property {(state: "open" | "lost", reason: string) => void} [onState]
 */

/**
 * Follow a stream of events, reconnecting behind its last event, until the returned function is called.
 * A stream that is silent for SILENCE_MS is lost. A page that nobody sees has no stream: over HTTP/1.1 a browser opens
 * six connections to a host, which all its tabs share.
 * @param {string} path
 * @param {Listener} listener
 * @param {Record<string, string>} [headers]
 * @returns {() => void}
 */
export function follow(path, { onEvent, onState = () => {} }, headers = {}) {
  const stopped = new AbortController();
  const { signal } = stopped;
  (async () => {
    let last = "";
    let pause = PAUSE_MS.first;
    while (await seen(signal)) {
      const turn = new AbortController();
      const end = () => turn.abort(new ApiError(0, "", "the stream is silent"));
      let silence = setTimeout(end, SILENCE_MS);
      const hide = () => { if (document.hidden) turn.abort(); };
      document.addEventListener("visibilitychange", hide);
      try {
        /** @type {Record<string, string>} */ const resumed = last ? { "last-event-id": last } : {};
        const response = await fetch(path, { headers: { accept: "text/event-stream", ...headers, ...resumed }, signal: AbortSignal.any([signal, turn.signal]), cache: "no-store" });
        if (!response.ok || !response.body) {
          const told = await response.json().catch(() => ({}));
          throw new ApiError(response.status, told.errorType ?? "", told.details ?? `status ${response.status}`);
        }
        onState("open", "");
        for await (const { id, name, data } of events(response.body)) {
          pause = PAUSE_MS.first;
          clearTimeout(silence);
          silence = setTimeout(end, SILENCE_MS);
          if (id) last = id;
          if (data && !signal.aborted) onEvent(name, JSON.parse(data));
        }
        throw new ApiError(0, "", "the stream ended");
      } catch (error) {
        if (signal.aborted) return;
        if (document.hidden) {
          onState("lost", "the tab was hidden");
          continue;
        }
        onState("lost", error instanceof Error ? error.message : String(error));
        if (error instanceof ApiError && error.isFinal) return;
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(pause * 2, PAUSE_MS.most);
      } finally {
        clearTimeout(silence);
        document.removeEventListener("visibilitychange", hide);
      }
    }
  })();
  return () => stopped.abort();
}

/** Wait until the page is seen; false if the signal is aborted before. @param {AbortSignal} signal */
export async function seen(signal) {
  while (document.hidden && !signal.aborted) {
    await new Promise((resolve) => {
      document.addEventListener("visibilitychange", resolve, { once: true });
      signal.addEventListener("abort", resolve, { once: true });
    });
  }
  return !signal.aborted;
}

/**
 * Events in the bytes of a stream; comments that carry an id count too.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) yield event(block);
  }
}

/** @param {string} block */
export function event(block) {
  const found = { id: "", name: "message", data: "" };
  for (const line of block.split("\n")) {
    const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === "id") found.id = value;
    else if (field === "event") found.name = value;
    else if (field === "data") found.data += value;
  }
  return found;
}
