/** The shell: navigation, keys, notices, the line of progress and of saving. */

import { ConflictsScreen } from "./conflicts.js";
import { announce, byId, count, counted, h, keyName, openDialog } from "./dom.js";
import { ExportScreen } from "./export.js";
import { HistoryScreen } from "./history.js";
import { ACTIONS, boundKeys, listen } from "./keys.js";
import { ReadScreen } from "./read.js";
import { SearchScreen } from "./search.js";
import { SettingsScreen } from "./settings.js";
import { StopScreen } from "./stop.js";
import { Store } from "./store.js";
import { SweepScreen } from "./sweep.js";
import { TeamScreen } from "./team.js";

/** Screens by their address, with the letter that follows the "go" key. */
const SCREENS = {
  read: [ReadScreen, "r"], sweep: [SweepScreen, "w"], search: [SearchScreen, "s"],
  history: [HistoryScreen, "h"], conflicts: [ConflictsScreen, "c"], team: [TeamScreen, "t"],
  stop: [StopScreen, "p"], export: [ExportScreen, "e"], settings: [SettingsScreen, "k"],
};
// Screens that only a project with several people needs.
const FOR_TEAMS = new Set(["conflicts", "team"]);
// Time that a short message stays, in milliseconds.
const NOTICE_TIME = 6000;
// Time after which an unanswered decision is reported as not saved, in milliseconds; a reply
// usually takes a few hundredths of a second, and a line that flickers would only distract.
const SAVING_TIME = 400;

const themeName = "forerank.theme";

class App {
  constructor() {
    this.store = new Store();
    this.screens = {};
    this.name = "";
    this.stopDismissed = false;
    this.savingTimer = 0;
  }

  async start() {
    this.#applyTheme(stored(themeName));
    try {
      await this.store.open();
    } catch (error) {
      this.#cannotOpen(error);
      return;
    }
    this.applySettings();
    for (const [name, [Screen]] of Object.entries(SCREENS)) this.screens[name] = new Screen(this);
    const letters = Object.fromEntries(this.#names().map((name) => [SCREENS[name][1], name]));
    listen(() => ({
      keys: this.keys, on: this.store.state.mine.shortcuts !== false && !this.store.blocked,
      grades: this.store.state.labels.length > 2
        ? this.store.state.labels.map((label) => label.value) : [],
    }), (name, detail) => this.perform(name, detail), letters);
    this.store.addEventListener("change", (event) => this.#changed(event.detail));
    this.#listenToWindow();
    this.#drawNavigation();
    this.#open();
    this.#progress();
    this.#saving();
  }

  #cannotOpen(error) {
    const screen = byId("screen");
    if (error.status === 403) {
      screen.replaceChildren(h("h1", {}, "This page needs its link"), ...linkWords());
    } else {
      screen.replaceChildren(h("h1", {}, "The server does not answer"),
        h("p", {}, `${error.message} Is the program still running? The page tries again by itself.`));
      setTimeout(() => location.reload(), 3000);
    }
  }

  #listenToWindow() {
    window.addEventListener("hashchange", () => this.#open());
    window.addEventListener("online", () => this.store.sync());
    window.addEventListener("pagehide", () => this.store.leave());
    window.addEventListener("pageshow", (event) => { if (event.persisted) this.store.sync(); });
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.store.sync();
    });
    window.addEventListener("beforeunload", (event) => {
      // What is on its way needs no question: the outbox goes along when the page closes.
      const { outbox, saving } = this.store;
      const lost = outbox.size && (saving.failed || outbox.unstored);
      if (lost || this.screens.settings.unsaved) event.preventDefault();
    });
    byId("menu").addEventListener("click", () => this.#menu());
    byId("skip-link").addEventListener("click", (event) => {
      event.preventDefault();
      byId("screen").focus();
    });
  }

  #menu(open = byId("menu").getAttribute("aria-expanded") !== "true") {
    byId("menu").setAttribute("aria-expanded", String(open));
    byId("nav").classList.toggle("open", open);
  }

  // ---- screens

  /** Names of the screens that this project has. */
  #names() {
    const { team } = this.store.state.project;
    return Object.keys(SCREENS).filter((name) => team || !FOR_TEAMS.has(name));
  }

  #drawNavigation() {
    const { project } = this.store.state;
    byId("project").textContent = project.name;
    byId("nav").replaceChildren(h("ul", {}, this.#names().map((name) => h("li", {}, h("a", {
      href: `#${name}`, id: `nav-${name}`, title: `${this.keys.go}, then ${SCREENS[name][1]}`,
    }, this.screens[name].title)))));
  }

  /** Show the screen of the address. */
  #open() {
    const wanted = location.hash.slice(1);
    const name = this.#names().includes(wanted) ? wanted : "read";
    if (name === this.name) return;
    const first = this.name === "";
    this.screen?.hide?.();
    this.name = name;
    this.screen = this.screens[name];
    document.title = `${this.screen.title} · ${this.store.state.project.name} · forerank`;
    document.body.dataset.screen = name;
    for (const link of byId("nav").querySelectorAll("a")) {
      if (link.id === `nav-${name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.#menu(false);
    window.scrollTo(0, 0);
    this.screen.show(byId("screen"));
    // A screen that has put the focus itself keeps it.
    const inside = byId("screen").contains(document.activeElement);
    if (!first && !inside) byId("screen").focus({ preventScroll: true });
    if (name !== "read") announce(this.screen.title);
    this.#stopNotice();
  }

  /** Put buttons into the bar; none hides it. */
  setBar(buttons) {
    byId("bar").replaceChildren(...buttons);
    byId("bar").hidden = !buttons.length;
  }

  /** Perform an action of the screen or of the page; false where there is none. */
  perform(name, detail) {
    if (name === "screen") location.hash = detail;
    else if (name in this.screen.actions) this.screen.actions[name](detail);
    else if (name === "search") location.hash = "search";
    else if (name === "help") this.help();
    else return false;
    return true;
  }

  help() {
    const rows = [...ACTIONS.map(({ name, text }) => [this.keys[name], text])];
    const places = this.#names().map((name) => [SCREENS[name][1], this.screens[name].title]);
    const list = (entries, before = null) => h("dl", { class: "help" }, entries.map(([key, text]) =>
      h("div", {}, h("dt", {}, before ? h("kbd", {}, keyName(before)) : null,
        h("kbd", {}, keyName(key))), h("dd", {}, text))));
    openDialog("Keys", list(rows), h("h3", {}, "Screens"), list(places, this.keys.go),
      h("p", { class: "muted" }, "Grades have their digits. Keys can be changed in Settings."));
  }

  // ---- decisions

  /** Undo my latest decision and say what that was; null where there was none. */
  async undo(screen) {
    let result;
    try {
      result = await this.store.undo(screen);
    } catch (error) {
      this.notice(`Nothing was undone: ${error.message}`);
      return null;
    }
    if (!result) {
      this.say("There is nothing to undo");
      return null;
    }
    const [decision] = result.decisions;
    const title = this.store.records.get(decision.record)?.title.slice(0, 80) ?? "";
    const text = result.decisions.length > 1
      ? `Undone: a sweep of ${counted(result.decisions.length, "title")}` : `Undone: ${title}`;
    this.say(text);
    return result;
  }

  // ---- what is told

  /** Short message, seen for a moment and announced. */
  say(text) {
    announce(text);
    byId("notices").querySelector(".said")?.remove();
    const line = h("p", { class: "said" }, h("bdi", {}, text));
    byId("notices").append(line);
    setTimeout(() => line.remove(), NOTICE_TIME);
  }

  /**
   * Message of a problem that stays until it is closed; one that is on screen is not repeated.
   * With `untilAnswer` it goes away as soon as the server answers.
   */
  notice(text, { untilAnswer = false } = {}) {
    const shown = [...byId("notices").querySelectorAll(".notice > p")];
    if (shown.some((line) => line.textContent === text)) return;
    const line = h("div",
      { class: "notice problem", role: "alert", "data-until-answer": untilAnswer },
      h("p", {}, text),
      h("button", { type: "button", class: "plain", onclick: () => line.remove() }, "Close"));
    byId("notices").append(line);
  }

  #changed(what) {
    if (what === "blocked") this.#blocked();
    if (what === "refused") this.#refused();
    if (what === "answered") {
      for (const line of byId("notices").querySelectorAll("[data-until-answer]")) line.remove();
    }
    if (what === "state") {
      this.applySettings();
      this.#drawNavigation();
      byId(`nav-${this.name}`)?.setAttribute("aria-current", "page");
    }
    this.screen.changed?.(what);
    this.#progress();
    this.#saving();
    this.#stopNotice();
  }

  #progress() {
    const { counts, labelsGiven, state } = this.store;
    const { model } = state;
    const known = Math.min(model.trained_on, labelsGiven);
    let ranking = `the ranking knows ${count(known)} of ${counted(labelsGiven, "label")}`;
    if (model.message) ranking = model.message;
    else if (!model.version) {
      const both = counts.relevant > 0 && counts.read > counts.relevant;
      ranking = both ? "the first ranking is being made"
        : "no ranking yet: it needs a relevant and an irrelevant label";
    }
    byId("progress").replaceChildren(
      h("span", {}, h("b", {}, count(counts.read)), " read"),
      h("span", {}, h("b", {}, count(counts.unread)), " unread"),
      h("span", {}, h("b", {}, count(counts.relevant)), " relevant"),
      state.audit ? h("span", {}, h("b", {}, "audit")) : "",
      h("span", { class: "muted" }, ranking));
    const conflicts = byId("nav-conflicts");
    if (conflicts) {
      conflicts.textContent = counts.conflicts ? `Conflicts (${counts.conflicts})` : "Conflicts";
    }
  }

  #saving() {
    const { outbox, saving, blocked } = this.store;
    const line = byId("saving");
    const tell = (text, kind) => {
      if (line.textContent !== text) line.textContent = text;
      line.className = kind;
    };
    clearTimeout(this.savingTimer);
    const waiting = `${counted(outbox.size, "decision")} not saved yet`;
    if (blocked) tell(outbox.size ? `${waiting}, kept in this browser` : "Signed out", "unsaved");
    else if (saving.failed) {
      tell(outbox.size ? `${waiting}, trying again` : "The server does not answer, trying again",
        "unsaved");
    } else if (!outbox.size) tell("Saved", "saved");
    else this.savingTimer = setTimeout(() => tell(waiting, "unsaved"), SAVING_TIME);
  }

  #refused() {
    for (const { event, reason, title } of this.store.refused.splice(0)) {
      const what = event.kind === "retract" ? "The undo" : `The ${event.kind}`;
      this.notice(`${what} was not taken${title ? ` (${title.slice(0, 80)})` : ""}: ${reason}`);
    }
  }

  #blocked() {
    byId("blocked")?.remove();
    const { blocked, outbox } = this.store;
    byId("bar").inert = Boolean(blocked);
    if (!blocked) return;
    const words = blocked === "expired"
      ? [h("h2", {}, "This page needs its link"), ...linkWords(),
        h("p", {}, "This tab goes on by itself as soon as that page is open.")]
      : [h("h2", {}, "Another person is signed in"),
        h("p", {}, "This browser has opened another person’s link. Open your own link again, or use"
          + " another browser for each person.")];
    const kept = outbox.size
      ? h("p", {}, `${counted(outbox.size, "decision")} not saved yet, kept in this browser.`) : "";
    byId("notices").append(h("div", { id: "blocked", class: "notice problem", role: "alert" },
      h("div", {}, words, kept)));
  }

  /** A line that says that the target is reached, on the screens where records are read. */
  #stopNotice() {
    const { reached, sentence } = this.store.stop ?? {};
    const reading = ["read", "sweep"].includes(this.name);
    const line = byId("stop-notice");
    if (!reached || !reading || this.stopDismissed) {
      line?.remove();
      if (!reached) this.stopDismissed = false;
      return;
    }
    if (line) return;
    byId("notices").append(h("div", { id: "stop-notice", class: "notice good", role: "status" },
      h("p", {}, "✓ ", sentence || "The target is reached: you may stop.", " ",
        h("a", { href: "#stop" }, "See why")),
      h("button", { type: "button", class: "plain", onclick: () => {
        this.stopDismissed = true;
        byId("stop-notice").remove();
      } }, "Close")));
  }

  // ---- settings

  applySettings() {
    const { mine } = this.store.state;
    this.keys = boundKeys(mine);
    this.#applyTheme(mine.theme);
    try {
      localStorage.setItem(themeName, mine.theme ?? "");
    } catch {
      // The theme is then known only after the first reply.
    }
    const size = Number(mine.size);
    document.documentElement.style.setProperty("--text-size", size ? `${size / 16}rem` : "");
  }

  #applyTheme(theme) {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }
}

function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function linkWords() {
  return [h("p", {}, "The session has ended, or this address was opened without its link. A link"
    + " opens once: start the program again, which prints a new one, or ask the owner of the"
    + " project.")];
}

new App().start();
