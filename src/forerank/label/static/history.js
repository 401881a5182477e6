/** The screen of all events: filter, change a label, undo any single event. */

import { debounced, h, moment } from "./dom.js";
import { moveFocus, PagedList } from "./list.js";
import { badge, labelButtons, valueOf } from "./record.js";

const FILTERS = [
  ["", "all events"], ["relevant", "relevant"], ["irrelevant", "irrelevant"],
  ["skipped", "skipped"], ["retracted", "undone"],
];

export class HistoryScreen {
  title = "History";

  constructor(app) {
    this.app = app;
    this.store = app.store;
    this.query = "";
    this.status = "";
    this.actions = {
      down: () => moveFocus(this.root, ".entries li > .row > button", 1),
      up: () => moveFocus(this.root, ".entries li > .row > button", -1),
      search: () => this.root.querySelector("#history-query").focus(),
      relevant: () => this.#changeFocused(valueOf(this.store, "relevant")),
      irrelevant: () => this.#changeFocused(valueOf(this.store, "irrelevant")),
      grade: (value) => this.#changeFocused(value),
      undo: () => this.undo(),
    };
  }

  show(root) {
    this.root = root;
    const search = debounced(() => this.events.reload(), 250);
    const field = h("input", {
      id: "history-query", type: "search", value: this.query, dir: "auto", autocomplete: "off",
      oninput: () => { this.query = field.value; search(); },
      onkeydown: (event) => { if (event.key === "Escape") field.blur(); },
    });
    const filter = h("select", {
      id: "history-status", onchange: () => { this.status = filter.value; this.events.reload(); },
    }, FILTERS.map(([value, text]) => h("option", { value, selected: value === this.status }, text)));
    this.events = new PagedList(
      (offset, limit) => `api/history?q=${encodeURIComponent(this.query)}`
        + `&status=${this.status}&offset=${offset}&limit=${limit}`,
      "events", (event) => this.#row(event), "event");
    root.replaceChildren(
      h("h1", {}, "History"),
      h("p", { class: "lead" }, "Every decision, the newest first. An undone event stays listed; the"
        + " ranking forgets it."),
      h("div", { class: "filters" },
        h("div", { class: "grow" }, h("label", { for: "history-query" }, "Words of the title"), field),
        h("div", {}, h("label", { for: "history-status" }, "Show"), filter)),
      this.events.element);
    this.app.setBar([]);
    this.#reloadSaved();
  }

  /** Load the list after the outbox has been answered, so that it is complete. */
  async #reloadSaved(keep = false) {
    if (this.store.outbox.size) await this.store.saved().catch(() => {});
    await this.events.reload(keep);
  }

  #what(event) {
    const { kind, value } = event;
    if (kind === "label" || kind === "resolve") {
      const mark = badge(this.store.isRelevant(value) ? "relevant" : "irrelevant",
        this.store.labelName(value));
      return kind === "resolve" ? [mark, " (resolved)"] : mark;
    }
    if (kind === "skip") return badge("skipped", "Skipped");
    if (kind === "note") return ["Note: ", h("bdi", {}, String(value))];
    if (kind === "tags") return ["Tags: ", h("bdi", {}, (value ?? []).join(", "))];
    if (kind === "retract") return "Undid an earlier event";
    return kind;
  }

  #row(event) {
    const title = event.title || (event.record === null ? "" : `Record ${event.record}`);
    const may = event.mine && !event.retracted && event.kind !== "retract";
    const isDecision = ["label", "skip", "resolve"].includes(event.kind);
    const decides = event.mine && event.current && isDecision;
    let end = "";
    if (event.retracted) end = " · undone";
    else if (isDecision && !event.current) end = " · replaced by a later decision";
    const short = title.slice(0, 60);
    const row = h("li", { class: event.retracted ? "undone" : null },
      h("div", { class: "row" },
        h("div", { class: "grow" },
          h("p", { class: "entry-title", dir: "auto" }, title),
          h("p", { class: "muted" }, this.#what(event), end, " · ",
            h("bdi", {}, event.person), " · ", moment(event.at))),
        decides ? h("button", {
          type: "button", class: "plain", "aria-expanded": "false", "aria-label": `Change: ${short}`,
          onclick: (press) => this.#choose(event, row, press.currentTarget),
        }, "Change") : null,
        may ? h("button", {
          type: "button", class: "plain", "aria-label": `Undo: ${short}`,
          onclick: () => this.#retract(event),
        }, "Undo") : null));
    row.event = event;
    return row;
  }

  #choose(event, row, button) {
    const shown = row.querySelector(".label-row");
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) {
      shown.remove();
      return;
    }
    const value = event.kind === "skip" ? null : event.value;
    const choices = h("div", { class: "label-row" },
      labelButtons(this.store, value, (label) => this.#change(event, label)));
    row.append(choices);
    choices.querySelector("button").focus();
  }

  #changeFocused(value) {
    const event = document.activeElement?.closest?.(".entries li")?.event;
    if (event?.mine && event.current) this.#change(event, value);
  }

  async #change(event, value) {
    try {
      await this.store.record(event.record);
      this.store.decide([{ id: event.record, value }], "history");
      this.app.say(`Changed to ${this.store.labelName(value)}`);
      await this.#reloadSaved(true);
    } catch (error) {
      this.app.notice(error.message);
    }
  }

  async #retract(event) {
    try {
      await this.store.retract(event, "history");
      this.app.say("Undone");
    } catch {
      this.app.say("Undone here; not saved yet");
    }
    await this.events.reload(true);
  }

  async undo() {
    if (await this.app.undo("history")) await this.#reloadSaved(true);
  }
}
