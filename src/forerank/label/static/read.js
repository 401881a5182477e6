/** The screen on which one record after the other is read. */

import { request } from "./api.js";
import { announce, h, keyMark, openDialog } from "./dom.js";
import { modelWords, recordView, sharedWords, stopTexts, valueOf } from "./record.js";

// Words of the model that are listed below a record, those with the largest weights.
const WORDS_SHOWN = 12;

export class ReadScreen {
  title = "Read";

  constructor(app) {
    this.app = app;
    this.store = app.store;
    this.words = false;
    /** Version of the model that knew no word of the record on screen, else null. */
    this.unknownTo = null;
    /** Whether the server did not answer when it was asked for the words of the model. */
    this.unanswered = false;
    this.criteria = false;
    this.actions = {
      skip: () => this.decide(null),
      undo: () => this.undo(),
      note: () => this.editNote(),
      tags: () => this.editTags(),
      words: () => this.toggleWords(),
      criteria: () => this.toggleCriteria(),
      relevant: () => this.decide(valueOf(this.store, "relevant")),
      irrelevant: () => this.decide(valueOf(this.store, "irrelevant")),
      grade: (value) => this.decide(value),
    };
  }

  show(root) {
    this.root = root;
    this.article = h("div", { class: "reading" });
    this.drawer = h("aside", { class: "criteria", "aria-label": "Criteria", hidden: true });
    root.replaceChildren(h("div", { class: "read-layout" }, this.article, this.drawer));
    this.app.setBar(this.#buttons());
    this.refresh();
    this.#fillDrawer();
  }

  hide() {
    stopTexts(this.root);
  }

  changed(what) {
    if (what === "shown" || (what === "counts" && this.store.current === null)) this.refresh();
    const { version } = this.store.state.model;
    if (what === "counts" && this.words && this.unknownTo !== null && version !== this.unknownTo) {
      this.refresh();
    }
    if (what === "answered" && this.words && this.unanswered) this.refresh();
    if (what === "state") {
      this.highlighter = null;
      this.refresh();
      this.#fillDrawer();
    }
  }

  #buttons() {
    const { keys, store } = this.app;
    const two = store.state.labels.length === 2;
    const decisions = store.state.labels.map(({ value, name }) => {
      const relevant = store.isRelevant(value);
      const key = two ? keys[relevant ? "relevant" : "irrelevant"] : String(value);
      return this.#button(name, key, () => this.decide(value), relevant ? "relevant" : "irrelevant",
        relevant ? "✓" : "✕");
    });
    const others = [
      this.#button("Skip", keys.skip, this.actions.skip),
      this.#button("Undo", keys.undo, this.actions.undo),
      this.#button("Note", keys.note, this.actions.note),
      this.#button("Tags", keys.tags, this.actions.tags),
      this.wordsButton = this.#button("Words", keys.words, this.actions.words),
      this.criteriaButton = this.#button("Criteria", keys.criteria, this.actions.criteria),
    ];
    this.wordsButton.setAttribute("aria-label", "Words of the model");
    this.wordsButton.title = "Words of the model";
    this.wordsButton.setAttribute("aria-pressed", String(this.words));
    this.criteriaButton.setAttribute("aria-expanded", String(this.criteria));
    return [h("div", { class: "decisions" }, decisions), h("div", { class: "others" }, others)];
  }

  #button(text, key, work, kind = "plain", sign = null) {
    return h(
      "button",
      { type: "button", class: kind, "aria-keyshortcuts": key, onclick: () => work() },
      h("span", {}, sign ? h("span", { "aria-hidden": "true" }, `${sign}\u00a0`) : null, text),
      keyMark(key),
    );
  }

  /** Draw the record on screen again. */
  refresh() {
    const record = this.store.current;
    stopTexts(this.article);
    if (!record) {
      this.article.replaceChildren(this.#nothing());
      this.drawn = null;
      return;
    }
    this.highlighter ??= sharedWords(this.store.state);
    const view = recordView(record, { store: this.store, highlighter: this.highlighter });
    this.article.replaceChildren(view);
    if (this.drawn !== record.id) {
      window.scrollTo(0, 0);
      announce(`Record: ${record.title.slice(0, 300) || record.id}`);
    }
    this.drawn = record.id;
    this.unanswered = false;
    if (this.words) this.#markModelWords(record.id);
  }

  #nothing() {
    const { counts, outbox, state } = this.store;
    let heading = "Everything is read";
    let text = `All ${state.project.n_records} records have a decision.`;
    if (outbox.size || this.store.saving.failed || !this.store.answered) {
      heading = "Waiting for the server";
      text = "Your decisions are kept; the next record comes as soon as the server answers.";
    } else if (counts.unread > 0 && state.project.team) {
      heading = "Nothing to read for you now";
      text = `${counts.unread} records are unread; others read them at the moment, or they wait`
        + " for a second reader.";
    } else if (counts.unread > 0) {
      heading = "Waiting for the next record";
      text = `${counts.unread} records are unread.`;
    }
    if (counts.skipped > 0 && heading === "Everything is read") {
      text = `${counts.skipped} skipped records are left; find them with Search, state “skipped”.`;
    }
    announce(heading);
    return h("div", { class: "record" }, h("h1", {}, heading), h("p", {}, text),
      h("p", {}, h("a", { href: "#stop" }, "What has been found, and what is promised")));
  }

  decide(value) {
    const record = this.store.current;
    if (!record) return;
    this.store.decide([{ id: record.id, value }], "read");
  }

  async undo() {
    await this.app.undo("read");
  }

  editNote() {
    const record = this.store.current;
    if (!record) return;
    const field = h("textarea", { id: "note", rows: 6, dir: "auto" });
    field.value = record.mine.note;
    const save = () => {
      if (field.value !== record.mine.note) {
        this.store.annotate(record.id, "note", field.value, "read");
      }
      dialog.close();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
    });
    const dialog = openDialog(
      "Note", h("label", { for: "note" }, "Your note on this record"), field,
      h("button", { type: "button", class: "main", onclick: save }, "Save",
        h("kbd", { "aria-hidden": "true" }, "Ctrl Enter")),
    );
    field.focus();
  }

  editTags() {
    const record = this.store.current;
    if (!record) return;
    const chosen = new Set(record.mine.tags);
    const offered = [...new Set([...(this.store.state.shared.tags ?? []), ...chosen])];
    const boxes = offered.map((tag) => h("label", { class: "choice" },
      h("input", { type: "checkbox", value: tag, checked: chosen.has(tag) }), h("bdi", {}, tag)));
    const added = h("input", { id: "new-tags", type: "text", dir: "auto", autocomplete: "off" });
    const form = h("form", {},
      h("fieldset", {}, h("legend", {}, "Tags of this record"),
        boxes.length ? boxes : h("p", {}, "The project has no tags yet.")),
      h("label", { for: "new-tags" }, "Other tags, separated by commas"), added,
      h("button", { class: "main" }, "Save"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const ticked = [...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value);
      const typed = added.value.split(",").map((tag) => tag.trim()).filter(Boolean);
      this.store.annotate(record.id, "tags", [...new Set([...ticked, ...typed])], "read");
      dialog.close();
    });
    const dialog = openDialog("Tags", form);
    (form.querySelector("input")).focus();
  }

  toggleWords() {
    this.words = !this.words;
    this.wordsButton.setAttribute("aria-pressed", String(this.words));
    announce(this.words ? "Words of the model are marked" : "Words of the model are hidden");
    this.refresh();
  }

  /** Mark the words that raise or lower the model's score, when the server has named them. */
  async #markModelWords(id) {
    let words;
    try {
      ({ words } = await request(`api/weights?record=${id}`));
    } catch (error) {
      this.unanswered = error.status === 0;
      this.app.notice(`The words of the model are not available: ${error.message}`,
        { untilAnswer: this.unanswered });
      return;
    }
    const record = this.store.current;
    if (record?.id !== id || !this.words) return;
    stopTexts(this.article);
    this.unknownTo = words.length ? null : this.store.state.model.version;
    const highlighter = modelWords(this.store.state, words);
    this.article.replaceChildren(
      recordView(record, { store: this.store, highlighter }), this.#wordList(words));
  }

  #wordList(words) {
    if (!words.length) {
      return h("p", { class: "weights muted" }, "The model knows none of these words yet.");
    }
    const sorted = [...words].sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
    return h("section", { class: "weights", "aria-label": "Words of the model" },
      h("h2", {}, "Words of the model"),
      h("p", { class: "muted" },
        "Weights of the model for words of this record: they raise (+) or lower (−) its score."),
      h("ul", {}, sorted.slice(0, WORDS_SHOWN).map(({ word, weight }) =>
        h("li", { class: weight > 0 ? "model-plus" : "model-minus" }, h("bdi", {}, word),
          ` ${weight > 0 ? "+" : "−"}${Math.abs(weight).toPrecision(2)}`))));
  }

  toggleCriteria() {
    this.criteria = !this.criteria;
    this.criteriaButton.setAttribute("aria-expanded", String(this.criteria));
    this.#fillDrawer();
    if (this.criteria) announce("Criteria shown");
  }

  #fillDrawer() {
    const text = this.store.state.shared.criteria;
    this.drawer.hidden = !this.criteria;
    this.drawer.replaceChildren(h("h2", {}, "Criteria"),
      text ? h("p", { class: "criteria-text", dir: "auto" }, text)
        : h("p", {}, "No criteria are written down yet. ",
          h("a", { href: "#settings" }, "Write them in Settings.")));
  }
}
