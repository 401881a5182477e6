/** The screen of downloads. */

import { counted, h } from "./dom.js";

const FILES = [
  ["csv", "Table (CSV)", "Every record with its label, note and tags."],
  ["xlsx", "Table (Excel)", "The same as a workbook."],
  ["ris", "References (RIS)", "For reference managers, with the label of each record."],
  ["rest", "The ranked rest (CSV)", "Unread records, the most likely relevant first."],
  ["prisma", "PRISMA counts", "The numbers of the flow diagram."],
  ["events", "Event log (JSON lines)", "Every decision, with person and time."],
];

export class ExportScreen {
  title = "Export";
  actions = {};

  constructor(app) {
    this.app = app;
    this.store = app.store;
  }

  show(root) {
    this.waiting = h("p", { class: "problem" });
    root.replaceChildren(h("h1", {}, "Export"), this.waiting,
      h("ul", { class: "entries" }, FILES.map(([name, title, text]) => h("li", {},
        h("div", { class: "row" },
          h("div", { class: "grow" }, h("p", { class: "entry-title" }, title),
            h("p", { class: "muted" }, text)),
          h("a", { class: "button", href: `api/export/${name}`, download: true,
            "aria-label": `Download: ${title}` }, "Download"))))));
    this.app.setBar([]);
    this.changed("saving");
  }

  changed(what) {
    if (what !== "saving" && what !== "counts") return;
    const { size } = this.store.outbox;
    this.waiting.hidden = !size;
    this.waiting.textContent = `${counted(size, "decision")} not saved yet: a file downloaded now`
      + " does not contain them.";
  }
}
