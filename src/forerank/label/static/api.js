/** Requests to the server, and the outbox that keeps decisions until the server has them. */

// Longest wait for a reply, in milliseconds: longer than a commit on a slow disk, short enough
// that a lost connection is noticed.
const PATIENCE = 20_000;

/** A request that failed: `status` is 0 where the server did not answer. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** JSON reply to a request; an ApiError says why there is none. */
export async function request(path, body) {
  const options = { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  let reply;
  try {
    response = await fetch(path, options);
    reply = await response.text();
  } catch {
    throw new ApiError(0, "The server does not answer.");
  }
  try {
    reply = JSON.parse(reply);
  } catch {
    throw new ApiError(response.ok ? 0 : response.status, "The server's answer is not readable.");
  }
  if (!response.ok) {
    throw new ApiError(response.status, reply.error ?? `The server answered ${response.status}.`);
  }
  return reply;
}

/** Random uuid; `crypto.randomUUID` is absent on pages without TLS that are not local. */
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/**
 * @typedef {{uuid: string, kind: string, record: number|null, value: any, at: number,
 *   screen: string}} Event
 */

/**
 * Events that the server has not acknowledged, in the order of the key presses.
 *
 * Each is kept in localStorage under its own name until it is acknowledged: a reload loses none,
 * and two tabs do not overwrite each other's. Two tabs may send the same event; the server keeps
 * one by its uuid.
 */
export class Outbox {
  /** @param {string} owner project and person whose events these are */
  constructor(owner) {
    this.prefix = `forerank.event.${owner}.`;
    /** @type {Event[]} */
    this.events = this.#stored();
    /** Whether the browser refuses to store events; then only memory keeps them. */
    this.unstored = false;
    this.number = this.events.length;
  }

  #stored() {
    const found = [];
    try {
      for (const name of Object.keys(localStorage)) {
        if (name.startsWith(this.prefix)) found.push(JSON.parse(localStorage.getItem(name)));
      }
    } catch {
      return [];
    }
    found.sort((a, b) => a.event.at - b.event.at || a.number - b.number);
    return found.map((item) => item.event);
  }

  get size() {
    return this.events.length;
  }

  /** @param {Event} event */
  add(event) {
    this.events.push(event);
    this.number += 1;
    try {
      const text = JSON.stringify({ number: this.number, event });
      localStorage.setItem(this.prefix + event.uuid, text);
    } catch {
      this.unstored = true;
    }
  }

  /** Forget events that the server has answered. */
  remove(uuids) {
    const gone = new Set(uuids);
    this.events = this.events.filter((event) => !gone.has(event.uuid));
    try {
      for (const id of gone) localStorage.removeItem(this.prefix + id);
    } catch {
      this.unstored = true;
    }
  }

  /** Ids of records whose latest unacknowledged decision stands. */
  decided() {
    const retracted = new Set();
    for (const event of this.events) if (event.kind === "retract") retracted.add(event.value);
    const decided = new Set();
    for (const event of this.events) {
      const decides = event.kind === "label" || event.kind === "skip";
      if (decides && !retracted.has(event.uuid)) decided.add(event.record);
    }
    return decided;
  }
}
