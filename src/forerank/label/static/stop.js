/** The screen that says what has been found, what is promised, and when one may stop. */

import { request } from "./api.js";
import { lineChart } from "./charts.js";
import { count, counted, h, moment, percent } from "./dom.js";

export class StopScreen {
  title = "Stop";
  actions = {};

  constructor(app) {
    this.app = app;
    this.store = app.store;
  }

  show(root) {
    this.root = root;
    this.body = h("div", { class: "stop" }, h("p", {}, "Loading."));
    root.replaceChildren(h("h1", {}, "When to stop"), this.body);
    this.app.setBar([]);
    this.load();
  }

  async load() {
    try {
      if (this.store.outbox.size) await this.store.saved();
      this.draw(await request("api/stop"));
    } catch (error) {
      this.body.replaceChildren(h("p", { class: "problem" },
        `The figures are not available: ${error.message}`));
    }
  }

  draw(stop) {
    this.body.replaceChildren(
      this.#figures(stop), this.#promise(stop.bound),
      h("div", { class: "charts" }, this.#progress(stop), this.#curve(stop)),
      this.#estimate(stop.estimate), this.#audit(stop), this.#certificate(stop));
  }

  #figures(stop) {
    const cell = (number, text) => h("div", {}, h("dt", {}, text), h("dd", {}, count(number)));
    const waiting = [
      stop.skipped ? `${count(stop.skipped)} skipped` : "",
      stop.undecided ? `${count(stop.undecided)} in conflict or with another reader` : "",
    ].filter(Boolean).join(", ");
    return h("section", { "aria-label": "Counts" },
      h("dl", { class: "counts" }, cell(stop.found, "found"), cell(stop.read, "read"),
        cell(stop.unread, "unread")),
      waiting ? h("p", { class: "muted" }, `Unread includes ${waiting}.`) : "",
      stop.known ? h("p", { class: "muted" },
        `${counted(stop.known, "record")} labelled out of turn or before the reading began.`) : "");
  }

  #promise(bound) {
    const { recall, confidence, target, reached, records_to_go: toGo } = bound;
    let advice = "";
    if (reached) advice = `The target of ${percent(target)} is reached: you may stop.`;
    else if (toGo !== null) {
      advice = `If nothing more is found, ${counted(toGo, "record")} to go`
        + ` until ${percent(target)} is reached.`;
    }
    return h("section", { class: reached ? "promise reached" : "promise", "aria-label": "Promise" },
      h("h2", {}, recall > 0
        ? `Recall at least ${percent(recall)} with confidence ${percent(confidence)}`
        : "No promise yet"),
      recall > 0 ? "" : h("p", {}, bound.sentence),
      advice ? h("p", { class: "advice" },
        reached ? h("span", { "aria-hidden": "true" }, "✓ ") : null, advice) : "",
      h("p", { class: "muted" }, h("strong", {}, "Assumption: "), bound.assumption));
  }

  #progress({ progress, n_records: n }) {
    if (!progress.length) return h("p", { class: "muted" }, "The charts begin with the first label.");
    const last = progress.at(-1);
    const found = Math.max(1, ...progress.map((point) => point[1]));
    return lineChart({
      points: progress[0][0] > 0 ? [[0, 0], ...progress] : progress, steps: true,
      x: `records read (of ${count(n)})`, y: "relevant found",
      title: `Progress: ${count(last[1])} relevant found in ${counted(last[0], "record")} read`,
      limits: [[0, Math.max(last[0], 1)], [0, found]],
    });
  }

  #curve({ curve, bound }) {
    if (!curve.length) return "";
    const confidences = curve.map((point) => point[0]);
    return lineChart({
      points: curve, x: "confidence", y: "recall at least",
      title: "Recall that is guaranteed, by confidence",
      limits: [[Math.min(...confidences), Math.max(...confidences)], [0, 1]],
      format: (value) => `${Math.round(value * 100)} %`,
      formatX: (value) => `${Number((value * 100).toFixed(1))} %`,
      mark: { at: bound.target, text: `target ${percent(bound.target)}` },
    });
  }

  #estimate(estimate) {
    if (!estimate) return "";
    return h("section", { class: "estimate", "aria-label": "Estimate" },
      h("h2", {}, "Estimate of what is missing"),
      h("p", {}, h("strong", {}, `About ${count(Math.round(estimate.missing))}`),
        ` (${count(Math.round(estimate.low))} to ${count(Math.round(estimate.high))}). `,
        estimate.sentence),
      h("p", { class: "muted" }, "This is an estimate of the model, not a guarantee."));
  }

  #audit({ audit }) {
    const { person } = this.store.state;
    const on = audit?.on ?? this.store.state.audit;
    const owner = person.role === "owner";
    const button = h("button", {
      type: "button", class: "main", "aria-pressed": String(on), disabled: !owner,
      onclick: () => this.#switch(!on),
    }, on ? "End the audit" : "Start an audit");
    return h("section", { "aria-label": "Audit" }, h("h2", {}, "Audit"),
      h("p", {}, "An audit reads the rest in random order. Its promise then needs no assumption"
        + " about the ranking. Start it when you think that everything is found."),
      audit ? h("p", { role: "status" }, audit.sentence) : "",
      audit?.on ? h("p", {}, `${counted(audit.read, "record")} read in the audit,`
        + ` ${count(audit.found)} of them relevant; ${count(audit.left)} left.`) : "",
      button,
      owner ? "" : h("p", { class: "muted" }, "Only the owner of the project starts or ends it."));
  }

  async #switch(on) {
    try {
      await this.store.setAudit(on);
      this.app.say(on ? "The audit has started" : "The audit has ended");
      await this.load();
    } catch (error) {
      this.app.notice(error.message);
    }
  }

  #certificate({ certificate }) {
    const { project } = this.store.state;
    return h("section", { class: "certificate", "aria-label": "Certificate" },
      h("h2", {}, "Certificate"),
      h("p", {}, "Project ", h("strong", {}, h("bdi", {}, project.name)),
        `, ${counted(project.n_records, "record")}, ${moment(Date.now())}.`),
      certificate.map((sentence) => h("p", {}, sentence)),
      h("button", { type: "button", class: "main screen-only", onclick: () => window.print() },
        "Print the certificate"));
  }
}
