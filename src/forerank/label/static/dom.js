/** Elements of the page. Text from records enters the page as text nodes only. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * New element. A property that starts with "on" is a listener, false and null leave an attribute
 * out, true writes it empty; `value`, `checked`, `disabled` and `selected` are set as properties.
 *
 * @param {string} tag
 * @param {Object<string, any>} [properties]
 * @param {...any} children nodes, texts, arrays of them, null (left out)
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** New SVG element, with the properties of `h`. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

const AS_PROPERTY = new Set(["value", "checked", "disabled", "selected", "indeterminate"]);

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (AS_PROPERTY.has(name)) element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

/** Element with the given id. */
export const byId = (id) => /** @type {any} */ (document.getElementById(id));

/** Text announced by screen readers; the same text twice in a row is announced twice. */
export function announce(text) {
  const region = byId("announcer");
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

/** Name of a key as printed on a button, for example "→" for ArrowRight. */
export function keyName(key) {
  const names = {
    " ": "Space", arrowright: "→", arrowleft: "←", arrowup: "↑", arrowdown: "↓",
    escape: "Esc", enter: "Enter", backspace: "⌫", delete: "Del",
  };
  return names[key] ?? (key.length === 1 ? key : key[0].toUpperCase() + key.slice(1));
}

/** Small mark that shows a key; screen readers get it through aria-keyshortcuts instead. */
export function keyMark(key) {
  return key ? h("kbd", { "aria-hidden": "true" }, keyName(key)) : null;
}

/** Whole number with separators of thousands. */
export const count = (number) => Number(number ?? 0).toLocaleString("en-GB");

/** Number and noun, for example "1 record" or "2 records". */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Fraction as a percentage, rounded down so that a promise is never overstated. */
export const percent = (fraction) => `${Math.floor(fraction * 1000 + 1e-9) / 10} %`;

/** Local date and time of a moment in milliseconds. */
export function moment(milliseconds) {
  return new Date(milliseconds).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** The address if it is an absolute http or https address, else null. */
export function webAddress(text) {
  try {
    const address = new URL(text);
    return ["http:", "https:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

/** Link to another site, which learns nothing of this page. */
export function outerLink(address, text) {
  return h(
    "a",
    { href: address, target: "_blank", rel: "noopener noreferrer" },
    h("bdi", {}, text), h("span", { class: "unseen" }, " (opens a new tab)"),
  );
}

/** Function that runs `work` once, `delay` milliseconds after its last call. */
export function debounced(work, delay) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), delay);
  };
}

/** Modal dialog with a heading; it is removed when closed, and focus returns by itself. */
export function openDialog(title, ...contents) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const close = h("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Close");
  const dialog = h(
    "dialog",
    { "aria-labelledby": "dialog-title", onclose: () => dialog.remove() },
    h("div", { class: "dialog-head" }, heading, close),
    contents,
  );
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
