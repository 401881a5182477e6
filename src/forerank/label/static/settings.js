/** The screen of settings: my own (theme, text size, keys) and those of the project. */

import { h, keyName } from "./dom.js";
import { ACTIONS, boundKeys, keyOf, PRESETS } from "./keys.js";

const THEMES = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
const SIZES = [["15", "small"], ["", "normal"], ["20", "large"], ["24", "very large"]];

/** Lines or commas to a list without empty parts. */
const listed = (text) => [...new Set(text.split(/[\n,]/).map((part) => part.trim()))].filter(Boolean);

export class SettingsScreen {
  title = "Settings";
  actions = {};

  constructor(app) {
    this.app = app;
    this.store = app.store;
    /** Texts that are typed and not saved, by the id of their field: they outlast the screen. */
    this.drafts = new Map();
  }

  /** Whether a text is typed and not saved. */
  get unsaved() {
    return this.drafts.size > 0;
  }

  show(root) {
    this.root = root;
    this.app.setBar([]);
    this.draw();
  }

  draw() {
    this.root.replaceChildren(h("h1", {}, "Settings"),
      h("div", { class: "settings" }, h("div", {}, this.#looks(), this.#shared()), this.#keys()));
  }

  #select(id, label, options, value, change) {
    const field = h("select", { id, onchange: () => change(field.value) },
      options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
    return h("div", { class: "field" }, h("label", { for: id }, label), field);
  }

  #looks() {
    const { mine } = this.store.state;
    return h("section", { "aria-labelledby": "looks" }, h("h2", { id: "looks" }, "Appearance"),
      this.#select("theme", "Theme", THEMES, mine.theme ?? "", (theme) => this.#keep({ theme })),
      this.#select("size", "Text size", SIZES, mine.size ?? "", (size) => this.#keep({ size })));
  }

  async #keep(changes) {
    const mine = { ...this.store.state.mine, ...changes };
    this.store.state.mine = mine;
    this.app.applySettings();
    try {
      await this.store.change({ mine });
      this.app.say("Settings saved");
    } catch (error) {
      this.app.notice(`The settings are not saved: ${error.message}`);
    }
  }

  #keys() {
    const { mine } = this.store.state;
    const keys = boundKeys(mine);
    const presets = Object.entries(PRESETS).map(([name, { text }]) => [name, text]);
    const on = h("input", { type: "checkbox", checked: mine.shortcuts !== false,
      onchange: () => this.#keep({ shortcuts: on.checked }) });
    this.keyProblem = h("p", { class: "problem", role: "alert" });
    return h("section", { "aria-labelledby": "keys" }, h("h2", { id: "keys" }, "Keys"),
      h("label", { class: "choice" }, on, "Use single keys as shortcuts"),
      this.#select("preset", "Set of keys", presets, mine.preset ?? "default", async (preset) => {
        await this.#keep({ preset, keys: {} });
        this.draw();
        this.root.querySelector("#preset").focus();
      }),
      h("p", { class: "muted" }, "Choose an action, then press its new key. Esc leaves it as it is."),
      this.keyProblem,
      h("ul", { class: "keys" }, ACTIONS.map((action) => this.#keyRow(action, keys))),
      this.store.state.labels.length > 2
        ? h("p", { class: "muted" }, "Grades have their digits as keys.") : "");
  }

  #keyRow({ name, text }, keys) {
    const button = h("button", {
      type: "button", class: "plain", "aria-label": `${text}: ${keyName(keys[name])}. Change the key`,
      onclick: () => this.#capture(name, button, keys),
    }, h("kbd", {}, keyName(keys[name])));
    return h("li", {}, h("span", {}, text), button);
  }

  /** Take the next key press as the key of an action. */
  #capture(name, button, keys) {
    button.replaceChildren("press a key");
    this.app.say("Press a key");
    const finish = () => {
      button.removeEventListener("keydown", take);
      button.removeEventListener("blur", cancel);
    };
    const cancel = () => {
      finish();
      button.replaceChildren(h("kbd", {}, keyName(keys[name])));
    };
    const take = (event) => {
      if (["Shift", "Control", "Alt", "Meta", "CapsLock"].includes(event.key)) return;
      if (event.key === "Tab" || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      finish();
      this.#bind(name, event, keys);
    };
    button.addEventListener("keydown", take);
    button.addEventListener("blur", cancel);
  }

  async #bind(name, event, keys) {
    const key = keyOf(event);
    const other = ACTIONS.find((action) => action.name !== name && keys[action.name] === key);
    const reserved = ["enter", " ", "arrowup", "arrowdown"].includes(key)
      || (/^[0-9]$/.test(key) && this.store.state.labels.length > 2);
    let problem = "";
    if (key !== "escape" && other) {
      problem = `${keyName(key)} is the key of “${other.text}”; choose another, or change that first.`;
    } else if (key !== "escape" && reserved) {
      problem = `${keyName(key)} has a fixed use on this page; choose another key.`;
    }
    if (key !== "escape" && !problem) {
      await this.#keep({ keys: { ...this.store.state.mine.keys, [name]: key } });
    }
    this.draw();
    this.keyProblem.textContent = problem;
    const row = ACTIONS.findIndex((action) => action.name === name);
    this.root.querySelectorAll(".keys button")[row].focus();
  }

  #shared() {
    const { shared, project } = this.store.state;
    const area = (id, label, value, rows, help) => {
      const field = h("textarea", { id, rows, dir: "auto", "aria-describedby": help ? `${id}-help` : null });
      field.value = this.drafts.get(id) ?? value;
      field.addEventListener("input", () => {
        this.drafts.set(id, field.value);
        this.#drawUnsaved();
      });
      return [h("label", { for: id }, label), field,
        help ? h("p", { class: "muted", id: `${id}-help` }, help) : null];
    };
    const lines = (words) => (words ?? []).join("\n");
    this.unsavedLine = h("p", { class: "problem", role: "status" });
    this.#drawUnsaved();
    const form = h("form", {},
      area("relevant-words", "Words that speak for a record", lines(shared.relevant_words), 6,
        "One to a line. An asterisk at the end stands for any ending: random*."),
      area("irrelevant-words", "Words that speak against a record", lines(shared.irrelevant_words), 6),
      area("criteria", "Criteria", shared.criteria ?? "", 8),
      area("project-tags", "Tags", lines(shared.tags), 4, "One to a line."),
      h("div", { class: "save-row" }, h("button", { class: "main" }, "Save"), this.unsavedLine));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = (id) => form.querySelector(`#${id}`).value;
      this.#saveShared({
        relevant_words: listed(text("relevant-words")),
        irrelevant_words: listed(text("irrelevant-words")),
        criteria: text("criteria"), tags: listed(text("project-tags")),
      });
    });
    return h("section", { "aria-labelledby": "shared" },
      h("h2", { id: "shared" }, "Words, criteria, tags"),
      project.team ? h("p", { class: "muted" }, "These hold for everyone in the project.") : null, form);
  }

  #drawUnsaved() {
    const text = this.unsaved ? "These texts are not saved yet" : "";
    if (this.unsavedLine.textContent !== text) this.unsavedLine.textContent = text;
  }

  async #saveShared(shared) {
    const sent = new Map(this.drafts);
    try {
      await this.store.change({ shared });
      // What was typed while the server answered is not saved yet.
      for (const [id, text] of sent) if (this.drafts.get(id) === text) this.drafts.delete(id);
      this.#drawUnsaved();
      this.app.say("Words, criteria and tags are saved");
    } catch (error) {
      this.app.notice(`Not saved: ${error.message}`);
    }
  }
}
