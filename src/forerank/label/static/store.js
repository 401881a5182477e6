/**
 * What the page knows: project, queue of records, decisions, and whether they are saved.
 *
 * A decision changes the page at once and goes into the outbox; one request at a time carries the
 * outbox to the server, whose reply brings the next records. Screens listen to "change" events,
 * whose detail names what changed: "shown", "counts", "saving", "state", "blocked", "refused".
 */

import { ApiError, Outbox, request, uuid } from "./api.js";

// Records asked for in advance: more than are read during a slow reply.
const AHEAD = 20;
// The same while titles are swept, so that the next 20 are there as well.
const AHEAD_SWEEP = 40;
// Records whose contents are kept: undo goes back this far without a request.
const KEPT_RECORDS = 300;
// Events per request; more wait for the next one.
const BATCH = 200;
// Waits before a failed request is repeated, in milliseconds; the last is used from then on.
const RETRIES = [400, 800, 1600, 3000, 5000];
// Pauses between questions for news, in milliseconds: while the ranking trains, while there is
// nothing to read, and otherwise (leases last two minutes).
const PAUSES = { training: 1000, empty: 5000, idle: 30_000 };
// Sweeps remembered across a reload, so that undo takes back a whole one.
const KEPT_SWEEPS = 50;

const DECISIONS = new Set(["label", "skip", "resolve"]);

/**
 * @typedef {{label: number|null, skipped: boolean, note: string, tags: string[],
 *   event: string|null}} Mine
 * @typedef {{id: number, title: string, abstract: string, authors: string, year: string,
 *   doi: string, url: string, fields: string[][], source: string, mine: Mine,
 *   final: number|null}} Record
 * @typedef {{uuid: string, record: number, kind: string, before: Mine|null}} Decision
 */

/** Project and person whose page this is, as one word. */
const ownerOf = ({ project, person }) =>
  encodeURIComponent(`${project.name}|${project.created}|${person.id}`);

export class Store extends EventTarget {
  constructor() {
    super();
    /** @type {any} */
    this.state = null;
    /** @type {Map<number, Record>} */
    this.records = new Map();
    /** @type {number[]} records to read after the one shown */
    this.queue = [];
    /** @type {number|null} */
    this.shown = null;
    /** @type {Decision[][]} my decisions, oldest first; undo takes the last group back */
    this.done = [];
    this.stop = { reached: false, sentence: "" };
    /** @type {null|"expired"|"other-person"} why the page cannot go on */
    this.blocked = null;
    this.saving = { failed: 0, message: "" };
    this.sweeping = false;
    /** @type {number[]} records that a screen shows besides, whose contents are kept */
    this.listed = [];
    this.displaced = [];
    this.changes = new Map();
    this.refused = [];
    this.busy = false;
    this.answered = false;
    this.past = { offset: 0, complete: false, loading: null };
    this.timer = 0;
    this.waiters = [];
  }

  /** Load the project and the first records. */
  async open() {
    this.state = await request("api/state");
    this.owner = ownerOf(this.state);
    this.outbox = new Outbox(this.owner);
    for (const event of this.outbox.events) this.changes.set(event.uuid, {});
    this.#openChannel();
    await this.sync();
    this.loadPast().catch(() => {});
  }

  #tell(what) {
    this.dispatchEvent(new CustomEvent("change", { detail: what }));
  }

  // ---- tabs of the same browser

  #openChannel() {
    this.channel = new BroadcastChannel("forerank");
    this.channel.onmessage = ({ data }) => {
      if (data.owner !== this.owner) {
        if (data.kind === "opened") this.#block("other-person");
        return;
      }
      if (data.kind === "left") this.sync();
      if (data.kind === "decided") this.#decidedElsewhere(data.decisions);
    };
    this.channel.postMessage({ kind: "opened", owner: this.owner });
  }

  #decidedElsewhere(decisions) {
    const ids = new Set(decisions.map((decision) => decision.record));
    this.queue = this.queue.filter((id) => !ids.has(id));
    this.done.push(decisions);
    if (ids.has(this.shown)) this.next();
    // My decision on them is known to the server only.
    for (const id of ids) this.records.delete(id);
  }

  /** Tell the server that this tab closes: it gets the outbox, and leases are returned. */
  leave() {
    if (!this.state || this.blocked) return;
    const send = (path, body) =>
      navigator.sendBeacon(path, new Blob([JSON.stringify(body)], { type: "application/json" }));
    if (this.outbox.size) send("api/events", this.#message(this.outbox.events.slice(0, BATCH)));
    send("api/leave", {});
    this.channel?.postMessage({ kind: "left", owner: this.owner });
  }

  #block(reason) {
    this.blocked = reason;
    this.#tell("blocked");
  }

  // ---- records

  /** Record on screen, or null. */
  get current() {
    return this.shown === null ? null : this.records.get(this.shown) ?? null;
  }

  /** Ids of up to `n` records to read, the one shown first. */
  upcoming(n) {
    const ids = this.shown === null ? this.queue : [this.shown, ...this.queue];
    return ids.slice(0, n);
  }

  next() {
    this.shown = this.queue.shift() ?? null;
    this.#tell("shown");
  }

  /** Record with its contents, from memory or from the server. */
  async record(id) {
    if (!this.records.has(id)) this.records.set(id, await request(`api/records/${id}`));
    return this.records.get(id);
  }

  /** Words of a label, for example "Relevant". */
  labelName(value) {
    if (value === null || value === undefined) return "not labelled";
    return this.state.labels.find((label) => label.value === value)?.name ?? String(value);
  }

  isRelevant(value) {
    return value !== null && value !== undefined && value >= this.state.threshold;
  }

  // ---- decisions

  #event(kind, record, value, screen, change = {}) {
    const event = { uuid: uuid(), kind, record, value, at: Date.now(), screen };
    this.outbox.add(event);
    this.changes.set(event.uuid, change);
    return event;
  }

  #changeOfCounts(before, label, skipped) {
    if (this.state.project.mode === "double") return {};
    const was = before.label !== null;
    const is = label !== null;
    const read = Number(is) - Number(was);
    return {
      read, unread: -read, labels: read,
      relevant: Number(this.isRelevant(label)) - Number(this.isRelevant(before.label)),
      skipped: Number(skipped) - Number(before.skipped),
    };
  }

  /**
   * Decide about records: one group for undo. A value of null skips.
   *
   * @param {{id: number, value: number|null}[]} items records whose contents are held
   */
  decide(items, screen, kind = "label") {
    const group = items.map(({ id, value }) => {
      const record = this.records.get(id);
      const before = record.mine;
      const named = value === null ? "skip" : kind;
      const change = this.#changeOfCounts(before, value, value === null);
      const event = this.#event(named, id, value, screen, change);
      record.mine = { ...before, label: value, skipped: value === null, event: event.uuid };
      return { uuid: event.uuid, record: id, kind: named, before };
    });
    this.done.push(group);
    if (group.length > 1) this.#rememberSweep(group);
    const ids = new Set(items.map((item) => item.id));
    this.queue = this.queue.filter((id) => !ids.has(id));
    this.displaced = this.displaced.filter((id) => !ids.has(id));
    if (ids.has(this.shown)) this.next();
    this.#tell("counts");
    this.channel.postMessage({ kind: "decided", owner: this.owner, decisions: group });
    this.sync();
  }

  /** Change the note or the tags of a record. */
  annotate(id, kind, value, screen) {
    const record = this.records.get(id);
    record.mine = { ...record.mine, [kind]: value };
    this.#event(kind, id, value, screen);
    this.#tell("shown");
    this.sync();
  }

  /** Retract one event by its uuid, from the history. */
  async retract(event, screen) {
    this.#event("retract", event.record, event.uuid, screen);
    this.#dropDecision(event.uuid);
    await this.saved();
    await this.#refetch([event.record]);
  }

  #dropDecision(id) {
    this.done = this.done
      .map((group) => group.filter((decision) => decision.uuid !== id))
      .filter((group) => group.length);
  }

  /** Ask for the contents of records anew, where my decision on them is known to the server only. */
  async #refetch(ids) {
    for (const id of ids) {
      this.records.delete(id);
      await this.record(id);
      if (id === this.shown) this.#tell("shown");
    }
  }

  /**
   * Take back my latest decision, or the whole of my latest sweep.
   *
   * @returns {Promise<{decisions: Decision[], reread: number[], relevant: number[]}|null>} what was
   *   taken back, the records that are unread again, and those that had been relevant; null where
   *   there is nothing to undo
   */
  async undo(screen) {
    if (!this.done.length) await this.loadPast();
    const group = this.done.pop();
    if (!group) return null;
    if (group.some((decision) => decision.before === null)) return this.#undoPast(group, screen);
    const contents = await this.#contents(group);
    const reread = [];
    const relevant = [];
    for (const decision of [...group].reverse()) {
      const record = contents.get(decision.record);
      const { before } = decision;
      const change = this.#changeOfCounts(record.mine, before.label, before.skipped);
      if (this.isRelevant(record.mine.label)) relevant.push(record.id);
      this.#event("retract", decision.record, decision.uuid, screen, change);
      record.mine = { ...before, note: record.mine.note, tags: record.mine.tags };
      this.records.set(record.id, record);
      if (before.label === null) reread.unshift(record.id);
    }
    this.#showAgain(reread);
    this.#tell("counts");
    this.sync();
    return { decisions: group, reread, relevant };
  }

  /** Undo of decisions from before this page was opened: what they had replaced, the server knows. */
  async #undoPast(group, screen) {
    const contents = await this.#contents(group);
    try {
      await this.saved();
    } catch (error) {
      this.done.push(group);
      throw error;
    }
    const relevant = [...contents.values()]
      .filter((record) => this.isRelevant(record.mine.label)).map((record) => record.id);
    for (const { record, uuid: id } of [...group].reverse()) {
      this.#event("retract", record, id, screen);
    }
    await this.saved();
    await this.#refetch([...contents.keys()]);
    const reread = [...contents.keys()].filter((id) => {
      const { label, skipped } = this.records.get(id).mine;
      return label === null && !skipped;
    });
    this.#showAgain(reread);
    this.#tell("counts");
    return { decisions: group, reread, relevant };
  }

  /** Contents of the records of a group of decisions; asked for only where not in memory. */
  async #contents(group) {
    const contents = new Map();
    try {
      for (const { record } of group) contents.set(record, await this.record(record));
    } catch (error) {
      this.done.push(group);
      throw error;
    }
    return contents;
  }

  #showAgain(ids) {
    if (!ids.length) return;
    const back = [...ids, ...(this.shown === null || ids.includes(this.shown) ? [] : [this.shown])];
    this.displaced = [...new Set([...back.slice(1), ...this.displaced])];
    this.queue = [...back, ...this.queue.filter((id) => !back.includes(id))];
    this.next();
  }

  #rememberSweep(group) {
    try {
      const kept = JSON.parse(sessionStorage.getItem(`forerank.sweeps.${this.owner}`) ?? "[]");
      kept.push(group.map((decision) => decision.uuid));
      const text = JSON.stringify(kept.slice(-KEPT_SWEEPS));
      sessionStorage.setItem(`forerank.sweeps.${this.owner}`, text);
    } catch {
      // Without storage, undo after a reload takes a sweep back one record at a time.
    }
  }

  /** Earlier decisions of mine from the history, put before those of this page. */
  loadPast() {
    this.past.loading ??= this.#readPast().finally(() => { this.past.loading = null; });
    return this.past.loading;
  }

  async #readPast() {
    const sweeps = new Map();
    const kept = JSON.parse(sessionStorage.getItem(`forerank.sweeps.${this.owner}`) ?? "[]");
    for (const group of kept) for (const id of group) sweeps.set(id, group[0]);
    while (!this.past.complete) {
      const reply = await request(`api/history?offset=${this.past.offset}&limit=200`);
      this.past.offset += reply.events.length;
      this.past.complete = !reply.events.length || this.past.offset >= reply.total;
      const known = new Set(this.done.flat().map((decision) => decision.uuid));
      const taken = new Set(this.outbox.events.map((event) => event.value));
      const mine = reply.events.filter((event) =>
        event.mine && !event.retracted && DECISIONS.has(event.kind)
        && !known.has(event.uuid) && !taken.has(event.uuid));
      const groups = [];
      for (const event of mine.reverse()) {
        const item = { uuid: event.uuid, record: event.record, kind: event.kind, before: null };
        const sweep = sweeps.get(event.uuid);
        const last = groups.at(-1);
        if (sweep && last && sweeps.get(last[0].uuid) === sweep) last.push(item);
        else groups.push([item]);
      }
      this.done.unshift(...groups);
      if (groups.length) return;
    }
  }

  // ---- the exchange with the server

  /** Counts with the decisions that the server does not know yet. */
  get counts() {
    const counts = { ...this.state.counts };
    for (const event of this.outbox.events) {
      const change = this.changes.get(event.uuid) ?? {};
      for (const [name, by] of Object.entries(change)) {
        if (name in counts) counts[name] += by;
      }
    }
    return counts;
  }

  /** Labels given, with those that the server does not know yet. */
  get labelsGiven() {
    let given = this.state.model.labels;
    for (const event of this.outbox.events) given += this.changes.get(event.uuid)?.labels ?? 0;
    return given;
  }

  /** Promise that the outbox has been answered, or of an error where that fails now. */
  saved() {
    if (this.blocked === "other-person") {
      return Promise.reject(new ApiError(403, "Another person is signed in."));
    }
    const promise = new Promise((resolve, reject) => this.waiters.push({ resolve, reject }));
    this.sync();
    return promise;
  }

  #message(events) {
    return {
      events, have: [...this.records.keys()], shown: this.shown,
      n: this.sweeping ? AHEAD_SWEEP : AHEAD, sweep: this.sweeping, person: this.state.person.id,
    };
  }

  /** Send the outbox, or ask for news where it is empty; one request at a time. */
  async sync() {
    if (this.busy || this.blocked === "other-person") return;
    this.busy = true;
    clearTimeout(this.timer);
    try {
      do await this.#exchange(); while (this.outbox.size);
      this.saving = { failed: 0, message: "" };
      for (const waiter of this.waiters.splice(0)) waiter.resolve();
      this.#tell("answered");
    } catch (error) {
      this.#failed(error);
    } finally {
      this.busy = false;
      this.#tell("saving");
      this.#plan();
    }
  }

  async #exchange() {
    if (this.blocked === "expired") await this.#comeBack();
    const events = this.outbox.events.slice(0, this.saving.single ? 1 : BATCH);
    if (events.length) this.#tell("saving");
    let reply;
    try {
      // The first question has nothing on screen to tell of, and asks by GET.
      reply = events.length || this.answered
        ? await request("api/events", this.#message(events))
        : await request(`api/queue?n=${AHEAD}&have=`);
    } catch (error) {
      const refused = error.status >= 400 && error.status < 500 && error.status !== 403;
      if (!refused || !events.length) throw error;
      if (events.length > 1) this.saving.single = true;
      else this.#refuse(events[0], error.message);
      return;
    }
    this.#acknowledge(reply);
    this.#merge(reply);
  }

  /** Check, after the session had ended, that the browser is signed in again as the same person. */
  async #comeBack() {
    if (ownerOf(await request("api/state")) !== this.owner) {
      this.#block("other-person");
      throw new ApiError(403, "Another person is signed in.");
    }
    this.#block(null);
  }

  #acknowledge(reply) {
    const refused = reply.refused ?? [];
    for (const { uuid: id, reason } of refused) {
      const event = this.outbox.events.find((candidate) => candidate.uuid === id);
      if (event) this.#refuse(event, reason);
    }
    this.outbox.remove(reply.accepted ?? []);
    for (const id of reply.accepted ?? []) this.changes.delete(id);
  }

  /** A decision that the server did not take: it is shown, and its record comes back. */
  #refuse(event, reason) {
    this.outbox.remove([event.uuid]);
    this.changes.delete(event.uuid);
    const title = this.records.get(event.record)?.title ?? "";
    if (event.record !== this.shown) this.records.delete(event.record);
    this.#dropDecision(event.uuid);
    this.refused.push({ event, reason, title });
    this.#tell("refused");
  }

  #merge(reply) {
    this.answered = true;
    const decided = this.outbox.decided();
    const pending = new Set(this.outbox.events.map((event) => event.record));
    for (const record of reply.records) {
      const known = this.records.get(record.id);
      if (known && pending.has(record.id)) record.mine = known.mine;
      this.records.set(record.id, record);
    }
    const queue = reply.queue.filter(
      (id) => !decided.has(id) && id !== this.shown && this.records.has(id));
    this.displaced = this.displaced.filter((id) => queue.includes(id));
    this.queue = [...this.displaced, ...queue.filter((id) => !this.displaced.includes(id))];
    this.state.counts = reply.counts;
    this.state.model = reply.model;
    this.stop = reply.stop;
    this.#forget();
    if (this.shown === null) this.next();
    this.#tell("counts");
  }

  #forget() {
    const needed = new Set([this.shown, ...this.queue, ...this.listed]);
    for (const id of this.records.keys()) {
      if (this.records.size <= KEPT_RECORDS) return;
      if (!needed.has(id)) this.records.delete(id);
    }
  }

  #failed(error) {
    if (error.status === 403 && this.blocked === null) this.#block("expired");
    this.saving = { failed: this.saving.failed + 1, message: error.message };
    for (const waiter of this.waiters.splice(0)) waiter.reject(error);
    if (!(error instanceof ApiError)) throw error;
  }

  /** Set the time of the next exchange. */
  #plan() {
    clearTimeout(this.timer);
    if (this.blocked === "other-person") return;
    const { failed } = this.saving;
    const { state, trained_on: known, labels, message } = this.state.model;
    let pause = PAUSES.idle;
    if (failed) pause = RETRIES[Math.min(failed, RETRIES.length) - 1];
    else if (this.shown === null) pause = PAUSES.empty;
    else if (state === "training" || (known < labels && (state === "ready" || message))) {
      pause = PAUSES.training;
    }
    if (this.outbox.size && !failed) pause = 0;
    this.timer = setTimeout(() => {
      // A page in the background asks for nothing: its leases run out, as they should.
      if (document.hidden && !this.outbox.size) return;
      this.sync();
    }, pause);
  }

  /** Change settings; the server's reply is the new state. */
  async change(settings) {
    this.#take(await request("api/settings", settings));
  }

  async setAudit(on) {
    this.#take(await request("api/audit", { on }));
    this.queue = [];
    await this.sync();
  }

  #take(state) {
    this.state = state;
    this.#tell("state");
  }
}
