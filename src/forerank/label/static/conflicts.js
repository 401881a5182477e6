/** The screen of records on which two people decided differently. */

import { request } from "./api.js";
import { byId, counted, h } from "./dom.js";
import { badge, labelButtons, recordView, sharedWords, stopTexts } from "./record.js";

export class ConflictsScreen {
  title = "Conflicts";
  actions = { undo: () => this.undo() };

  constructor(app) {
    this.app = app;
    this.store = app.store;
  }

  show(root) {
    this.root = root;
    this.list = h("div", { class: "conflicts" }, h("p", {}, "Loading."));
    root.replaceChildren(h("h1", {}, "Conflicts"),
      h("p", { class: "lead" }, "Records on which two people decided differently. They count as unread"
        + " until they are resolved."), this.list);
    this.app.setBar([]);
    this.load();
  }

  hide() {
    stopTexts(this.root);
  }

  changed(what) {
    // A list in which somebody is at work stays as it is.
    const { conflicts } = this.store.state.counts;
    const atWork = this.list.contains(document.activeElement);
    if (what === "counts" && conflicts !== this.seen && !atWork) this.load();
  }

  async load() {
    this.seen = this.store.state.counts.conflicts;
    let conflicts;
    try {
      ({ conflicts } = await request("api/conflicts"));
    } catch (error) {
      this.list.replaceChildren(h("p", { class: "problem" }, error.message));
      return;
    }
    stopTexts(this.list);
    const highlighter = sharedWords(this.store.state);
    this.list.replaceChildren(
      h("p", { role: "status" }, conflicts.length ? counted(conflicts.length, "conflict")
        : "There are no conflicts."),
      ...conflicts.map((conflict) => this.#entry(conflict, highlighter)));
  }

  #entry({ record, decisions, may_resolve: mayResolve }, highlighter) {
    this.store.records.set(record.id, record);
    const choose = (value) => this.#resolve(record, value);
    return h("section", { class: "conflict" },
      h("h2", { class: "title", dir: "auto" }, record.title || `Record ${record.id}`),
      h("ul", { class: "both" }, decisions.map(({ person, label, note }) => h("li", {},
        h("bdi", {}, person), " ",
        label === null ? badge("skipped", "Skipped")
          : badge(this.store.isRelevant(label) ? "relevant" : "irrelevant", this.store.labelName(label)),
        note ? h("p", { class: "note", dir: "auto" }, note) : null))),
      mayResolve
        ? h("div", { class: "label-row" }, h("span", {}, "Resolve as"),
          labelButtons(this.store, null, choose, record.title.slice(0, 60)))
        : h("p", { class: "muted" }, "Another person resolves this one, or you two discuss it."),
      h("details", {}, h("summary", {}, "Text of the record"),
        recordView(record, { store: this.store, highlighter, heading: null })));
  }

  async #resolve(record, value) {
    this.store.decide([{ id: record.id, value }], "conflicts", "resolve");
    await this.store.saved().catch(() => {});
    this.app.say(`Resolved as ${this.store.labelName(value)}`);
    await this.load();
    (this.list.querySelector(".label-row button") ?? byId("screen")).focus();
  }

  async undo() {
    if (await this.app.undo("conflicts")) {
      await this.store.saved().catch(() => {});
      await this.load();
    }
  }
}
