/** Lists with keys: moving the focus, opening an entry, asking for more. */

import { request } from "./api.js";
import { announce, counted, h } from "./dom.js";

/** Move the focus to the next (1) or previous (-1) element that matches. */
export function moveFocus(root, selector, step) {
  const items = [...root.querySelectorAll(selector)];
  if (!items.length) return;
  const active = document.activeElement;
  const at = items.findIndex((item) => item === active || item.closest("li")?.contains(active));
  const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step;
  items[Math.max(0, Math.min(items.length - 1, next))].focus();
}

// Entries asked for at a time.
const PAGE = 50;

/** A list that the server sends in pages, with a line that counts and a button for more. */
export class PagedList {
  /**
   * @param {(offset: number, limit: number) => string} address path of a page
   * @param {string} name key of the entries in the reply
   * @param {(entry: any) => HTMLElement} row element of an entry
   * @param {string} noun what an entry is called in the count
   */
  constructor(address, name, row, noun) {
    Object.assign(this, { address, name, row, noun });
    this.total = h("p", { class: "muted", role: "status" });
    this.list = h("ul", { class: "entries" });
    this.more = h("button", { type: "button", class: "plain", hidden: true,
      onclick: () => this.#load(false) }, "More");
    this.element = h("div", {}, this.total, this.list, this.more);
    this.asked = 0;
  }

  /** Load the first page, or as many entries as are shown now. */
  reload(keep = false) {
    return this.#load(true, keep ? Math.max(PAGE, this.list.children.length) : PAGE);
  }

  async #load(fresh, limit = PAGE) {
    const number = ++this.asked;
    const offset = fresh ? 0 : this.list.children.length;
    let reply;
    try {
      reply = await request(this.address(offset, limit));
    } catch (error) {
      this.total.textContent = error.message;
      return;
    }
    if (number !== this.asked) return;
    const rows = reply[this.name].map(this.row);
    const focused = this.list.contains(document.activeElement)
      ? [...this.list.children].findIndex((row) => row.contains(document.activeElement)) : -1;
    if (fresh) this.list.replaceChildren(...rows);
    else this.list.append(...rows);
    this.more.hidden = this.list.children.length >= reply.total;
    this.total.textContent = counted(reply.total, this.noun);
    if (!fresh) rows[0]?.querySelector("button")?.focus();
    else if (focused >= 0) this.list.children[focused]?.querySelector("button")?.focus();
    if (fresh && !rows.length) announce(`No ${this.noun} found`);
  }
}
