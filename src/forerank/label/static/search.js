/** The screen that finds records by their words, to label them out of turn. */

import { debounced, h } from "./dom.js";
import { moveFocus, PagedList } from "./list.js";
import { badge, labelButtons, recordView, sharedWords, stopTexts, valueOf } from "./record.js";

const STATES = ["unread", "relevant", "irrelevant", "skipped"];
// Characters of a year in the list; longer ones are no years.
const LONGEST_YEAR = 20;
const TEAM_STATES = ["conflict", "leased"];

export class SearchScreen {
  title = "Search";

  constructor(app) {
    this.app = app;
    this.store = app.store;
    this.query = "";
    this.status = "";
    this.actions = {
      down: () => moveFocus(this.root, ".opener", 1),
      up: () => moveFocus(this.root, ".opener", -1),
      open: () => this.#focusedRow()?.querySelector(".opener").click(),
      search: () => this.root.querySelector("#query").focus(),
      relevant: () => this.#labelFocused(valueOf(this.store, "relevant")),
      irrelevant: () => this.#labelFocused(valueOf(this.store, "irrelevant")),
      grade: (value) => this.#labelFocused(value),
      skip: () => this.#labelFocused(null),
      undo: () => this.undo(),
    };
  }

  show(root) {
    this.root = root;
    const search = debounced(() => this.results.reload(), 250);
    const field = h("input", {
      id: "query", type: "search", value: this.query, dir: "auto", autocomplete: "off",
      oninput: () => { this.query = field.value; search(); },
      onkeydown: (event) => {
        if (event.key === "ArrowDown") { event.preventDefault(); this.actions.down(); }
        if (event.key === "Enter") this.results.reload();
        if (event.key === "Escape") field.blur();
      },
    });
    const states = h("select", {
      id: "status", onchange: () => { this.status = states.value; this.results.reload(); },
    }, h("option", { value: "" }, "any state"),
    this.#states().map((name) => h("option", { value: name, selected: name === this.status }, name)));
    this.results = new PagedList(
      (offset, limit) => `api/search?q=${encodeURIComponent(this.query)}`
        + `&status=${this.status}&offset=${offset}&limit=${limit}`,
      "results", (entry) => this.#row(entry), "record");
    root.replaceChildren(
      h("h1", {}, "Search"),
      h("div", { class: "filters" },
        h("div", { class: "grow" }, h("label", { for: "query" }, "Records with all of these words"), field),
        h("div", {}, h("label", { for: "status" }, "State"), states)),
      this.results.element);
    this.app.setBar([]);
    this.results.reload();
    field.focus();
  }

  hide() {
    stopTexts(this.root);
  }

  #states() {
    return this.store.state.project.team ? [...STATES, ...TEAM_STATES] : STATES;
  }

  #focusedRow() {
    return document.activeElement?.closest?.(".entries li");
  }

  #row(entry) {
    const title = entry.title || `Record ${entry.id}`;
    const state = h("span", { class: "state" }, this.#state(entry));
    const opener = h("button", {
      type: "button", class: "opener", "aria-expanded": "false",
      onclick: () => this.#toggle(entry, row, opener),
    }, h("span", { class: "entry-title", dir: "auto" }, title),
    entry.year ? h("span", { class: "muted" }, " ", h("bdi", {}, entry.year.slice(0, LONGEST_YEAR))) : null);
    const row = h("li", {}, h("div", { class: "row" }, opener, state));
    row.entry = entry;
    return row;
  }

  #state(entry) {
    if (entry.mine_label !== null && entry.mine_label !== undefined) {
      const relevant = this.store.isRelevant(entry.mine_label);
      return badge(relevant ? "relevant" : "irrelevant", this.store.labelName(entry.mine_label));
    }
    return badge(entry.status, entry.status);
  }

  async #toggle(entry, row, opener) {
    const open = opener.getAttribute("aria-expanded") === "true";
    opener.setAttribute("aria-expanded", String(!open));
    if (open) {
      stopTexts(row);
      row.querySelector(".opened").remove();
      return;
    }
    const box = h("div", { class: "opened" }, h("p", {}, "Loading."));
    row.append(box);
    try {
      const record = await this.store.record(entry.id);
      box.replaceChildren(
        h("div", { class: "label-row" },
          labelButtons(this.store, record.mine.label, (value) => this.#label(row, value))),
        recordView(record,
          { store: this.store, highlighter: sharedWords(this.store.state), heading: null }));
    } catch (error) {
      box.replaceChildren(h("p", { class: "problem" }, error.message));
    }
  }

  #labelFocused(value) {
    const row = this.#focusedRow();
    if (row) this.#label(row, value);
  }

  async #label(row, value) {
    const { entry } = row;
    try {
      await this.store.record(entry.id);
    } catch (error) {
      this.app.notice(error.message);
      return;
    }
    this.store.decide([{ id: entry.id, value }], "search");
    entry.mine_label = value;
    if (value === null) entry.status = "skipped";
    row.querySelector(".state").replaceChildren(this.#state(entry));
    for (const [number, button] of row.querySelectorAll(".label-row button").entries()) {
      const labels = this.store.state.labels.slice().reverse();
      button.setAttribute("aria-pressed", String(labels[number].value === value));
    }
    const name = value === null ? "skipped" : this.store.labelName(value);
    this.app.say(`${name}: ${entry.title.slice(0, 80)}`);
  }

  async undo() {
    if (await this.app.undo("search")) {
      await this.store.saved().catch(() => {});
      this.results.reload(true);
    }
  }
}
