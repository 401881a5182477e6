/** The screen of the people who read: counts, agreement, links. */

import { request } from "./api.js";
import { count, h } from "./dom.js";

// Words for values of Cohen's kappa by their upper ends (Landis and Koch, 1977).
const AGREEMENT = [
  [0.2, "slight"], [0.4, "fair"], [0.6, "moderate"], [0.8, "substantial"],
  [1, "almost perfect"],
];

/** Word for a value of kappa. */
export function agreementWord(kappa) {
  if (kappa < 0) return "poor";
  return AGREEMENT.find(([upper]) => kappa <= upper + 1e-12)?.[1] ?? "almost perfect";
}

/** Time since a person was last seen. */
function since(seconds) {
  if (seconds === null) return "not yet";
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export class TeamScreen {
  title = "Team";
  actions = {};

  constructor(app) {
    this.app = app;
    this.store = app.store;
  }

  show(root) {
    this.root = root;
    this.body = h("div", {}, h("p", {}, "Loading."));
    root.replaceChildren(h("h1", {}, "Team"), this.body);
    this.app.setBar([]);
    this.load();
  }

  async load() {
    let team;
    try {
      team = await request("api/team");
    } catch (error) {
      this.body.replaceChildren(h("p", { class: "problem" }, error.message));
      return;
    }
    const owner = this.store.state.person.role === "owner";
    this.link = h("div", { class: "link", hidden: true });
    this.body.replaceChildren(
      h("p", { class: "lead" }, team.mode === "double"
        ? "Every record is read by two people; neither sees the other’s decision before both are in."
        : "Every record is read by one person."),
      this.#table(team.people, owner), this.#kappa(team),
      owner ? this.#addition() : "", this.link);
  }

  #table(people, owner) {
    const heads = ["Name", "Labelled", "Relevant", "Seen"];
    return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "People" },
      h("table", {},
        h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)),
          owner ? h("th", { scope: "col" }, "Link") : null)),
        h("tbody", {}, people.map((person) => h("tr", {},
          h("th", { scope: "row" }, h("bdi", {}, person.name),
            person.role === "owner" ? h("span", { class: "muted" }, " owner") : null),
          h("td", { class: "number" }, count(person.labelled)),
          h("td", { class: "number" }, count(person.relevant)),
          h("td", {}, since(person.seen_seconds_ago)),
          owner ? h("td", {}, h("button", {
            type: "button", class: "plain", "aria-label": `New link for ${person.name}`,
            onclick: () => this.#ask("api/team/link", { person: person.id }),
          }, "New link")) : null)))));
  }

  #kappa(team) {
    if (!team.kappa) {
      return team.mode === "double"
        ? h("p", {}, "Agreement is shown as soon as two people have read the same records.") : "";
    }
    const { value, n, agreed } = team.kappa;
    return h("section", { "aria-label": "Agreement" }, h("h2", {}, "Agreement"),
      h("p", {}, `${count(agreed)} of ${count(n)} records read by two people were decided alike.`),
      value === null
        ? h("p", {}, "Cohen’s kappa is not defined yet: all decisions are the same.")
        : h("p", {}, h("strong", {}, `Cohen’s kappa ${value.toFixed(2)}`),
          ` (${agreementWord(value)}; n = ${count(n)}).`));
  }

  #addition() {
    const field = h("input", { id: "person-name", type: "text", required: true, autocomplete: "off",
      maxlength: 100, dir: "auto" });
    const form = h("form", { class: "filters" },
      h("div", { class: "grow" }, h("label", { for: "person-name" }, "Name of a new person"), field),
      h("button", { class: "main" }, "Add"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask("api/team", { name: field.value.trim() }, true);
    });
    return h("section", { "aria-label": "Add a person" }, h("h2", {}, "Add a person"), form);
  }

  async #ask(path, body, reload = false) {
    try {
      const { name, link } = await request(path, body);
      if (reload) await this.load();
      this.#showLink(name, link);
    } catch (error) {
      this.app.notice(error.message);
    }
  }

  #showLink(name, link) {
    const field = h("input", { id: "person-link", type: "text", readonly: true, value: link });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(link);
        this.app.say("Link copied");
      } catch {
        field.select();
        this.app.say("Copy the selected link with Ctrl C");
      }
    };
    this.link.hidden = false;
    this.link.replaceChildren(
      h("label", { for: "person-link" }, "Link for ", h("bdi", {}, name)), field,
      h("button", { type: "button", class: "main", onclick: copy }, "Copy"),
      h("p", { class: "muted" }, "Whoever opens this link reads as this person. It is shown once."));
    field.focus();
    field.select();
  }
}
