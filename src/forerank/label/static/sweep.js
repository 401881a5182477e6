/** The screen on which 20 titles at a time are gone through: for the tail of the list. */

import { announce, counted, h, keyMark } from "./dom.js";
import { moveFocus } from "./list.js";
import { recordView, sharedWords, stopTexts, valueOf } from "./record.js";

// Titles per sweep: about a screenful.
const TITLES = 20;

export class SweepScreen {
  title = "Sweep";

  constructor(app) {
    this.app = app;
    this.store = app.store;
    this.ids = [];
    this.marked = new Set();
    this.actions = {
      down: () => moveFocus(this.root, ".sweep input", 1),
      up: () => moveFocus(this.root, ".sweep input", -1),
      mark: () => this.#focused()?.querySelector("input").click(),
      open: () => this.#focused()?.querySelector("button").click(),
      rest: () => this.finish(),
      undo: () => this.undo(),
    };
  }

  show(root) {
    this.root = root;
    this.store.sweeping = true;
    this.list = h("ol", { class: "sweep" });
    root.replaceChildren(
      h("h1", {}, "Sweep"),
      h("p", { class: "lead" }, "Mark the titles that may be relevant. One key then labels the marked"
        + " ones relevant and the rest irrelevant; undo takes the whole sweep back."),
      this.list);
    this.done = h("button", { type: "button", class: "irrelevant wide", onclick: () => this.finish() });
    const { keys } = this.app;
    this.app.setBar([
      h("div", { class: "decisions" }, this.done),
      h("div", { class: "others" },
        h("button", { type: "button", class: "plain", "aria-keyshortcuts": keys.undo,
          onclick: () => this.undo() }, "Undo", keyMark(keys.undo)),
        h("p", { class: "hint" }, keyMark(keys.down), keyMark(keys.up), "move ",
          keyMark(" "), "mark ", keyMark(keys.open), "abstract")),
    ]);
    this.#restoreMarks();
    this.fill();
    this.store.sync();
  }

  hide() {
    this.store.sweeping = false;
    this.store.listed = [];
    stopTexts(this.root);
  }

  changed(what) {
    // The list stays as it is while it is read; titles are only added at its end.
    const news = what === "counts" || what === "shown";
    if (!this.ids.length && news) this.fill();
    else if (this.ids.length < TITLES && news) this.#extend();
    if (what === "refused") this.fill();
  }

  #focused() {
    return document.activeElement?.closest?.(".sweep li")
      ?? this.list.querySelector("li");
  }

  #restoreMarks() {
    try {
      const kept = sessionStorage.getItem(`forerank.marks.${this.store.owner}`);
      this.marked = new Set(JSON.parse(kept ?? "[]"));
    } catch {
      this.marked = new Set();
    }
  }

  #keepMarks() {
    try {
      const text = JSON.stringify([...this.marked]);
      sessionStorage.setItem(`forerank.marks.${this.store.owner}`, text);
    } catch {
      // Marks are then lost on a reload; no decision is.
    }
  }

  /** Show the next titles. */
  fill() {
    stopTexts(this.root);
    this.ids = this.store.upcoming(TITLES);
    this.store.listed = this.ids;
    this.marked = new Set([...this.marked].filter((id) => this.ids.includes(id)));
    this.list.replaceChildren(...this.ids.map((id) => this.#row(this.store.records.get(id))));
    if (!this.ids.length) {
      const waits = this.store.outbox.size || !this.store.answered || this.store.saving.failed;
      this.list.replaceChildren(h("li", { class: "empty" },
        waits ? "Waiting for the server." : "There are no more titles to read."));
    }
    this.#count();
    window.scrollTo(0, 0);
    if (this.ids.length) {
      this.list.querySelector("input").focus({ preventScroll: true });
      announce(`${this.ids.length} titles`);
    }
  }

  #extend() {
    const more = this.store.upcoming(TITLES).filter((id) => !this.ids.includes(id));
    more.length = Math.min(more.length, TITLES - this.ids.length);
    if (!more.length) return;
    this.ids = [...this.ids, ...more];
    this.store.listed = this.ids;
    this.list.append(...more.map((id) => this.#row(this.store.records.get(id))));
    this.#count();
  }

  #row(record) {
    const title = record.title || record.abstract.slice(0, 120) || `Record ${record.id}`;
    const box = h("input", {
      type: "checkbox", id: `mark-${record.id}`, checked: this.marked.has(record.id),
      onchange: () => {
        if (box.checked) this.marked.add(record.id);
        else this.marked.delete(record.id);
        this.#keepMarks();
        this.#count();
      },
      onkeydown: (event) => {
        if (event.key === "Enter") button.click();
      },
    });
    const button = h("button", {
      type: "button", class: "plain", "aria-expanded": "false", "aria-label": `Abstract: ${title.slice(0, 80)}`,
      onclick: () => this.#toggle(record, row, button),
    }, "Abstract");
    this.highlighter = sharedWords(this.store.state);
    const row = h("li", {},
      h("div", { class: "row" }, box,
        h("label", { for: box.id, dir: "auto" }, this.highlighter.nodes(title),
          record.year ? h("span", { class: "muted" }, " (", h("bdi", {}, record.year), ")") : null),
        button));
    return row;
  }

  #toggle(record, row, button) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      stopTexts(row);
      row.querySelector("article").remove();
    } else {
      row.append(recordView(record, { store: this.store, highlighter: this.highlighter, heading: null }));
    }
  }

  #count() {
    const marked = this.marked.size;
    const relevant = this.store.labelName(valueOf(this.store, "relevant")).toLowerCase();
    const rest = this.store.labelName(valueOf(this.store, "irrelevant")).toLowerCase();
    const text = marked
      ? `${marked} ${relevant}, the other ${this.ids.length - marked} ${rest}`
      : `None of these: all ${this.ids.length} ${rest}`;
    this.done.replaceChildren(h("span", {}, text), keyMark(this.app.keys.rest));
    this.done.setAttribute("aria-keyshortcuts", this.app.keys.rest);
    this.done.disabled = !this.ids.length;
  }

  /** Label the marked titles relevant and the others irrelevant, as one group. */
  finish() {
    if (!this.ids.length) return;
    const items = this.ids.map((id) => ({
      id, value: valueOf(this.store, this.marked.has(id) ? "relevant" : "irrelevant"),
    }));
    this.marked.clear();
    this.#keepMarks();
    this.ids = [];
    this.store.decide(items, "sweep");
    announce(`${counted(items.length, "title")} labelled`);
    this.fill();
  }

  async undo() {
    const result = await this.app.undo("sweep");
    if (!result?.reread.length) return;
    this.marked = new Set(result.relevant.filter((id) => result.reread.includes(id)));
    this.#keepMarks();
    this.fill();
  }
}
