/** A record as an article: title, source, text, other fields, my note and tags. */

import { h, outerLink, webAddress } from "./dom.js";
import { Highlighter, textBlock } from "./text.js";

/** Highlighter of the words that the project lists. */
export function sharedWords(state) {
  return new Highlighter([
    { words: state.shared.relevant_words ?? [], kind: "word-relevant" },
    { words: state.shared.irrelevant_words ?? [], kind: "word-irrelevant" },
  ]);
}

/** Highlighter of the project's words and of those that raise or lower the model's score. */
export function modelWords(state, words) {
  const those = (sign) => words.filter((word) => word.weight * sign > 0).map((word) => word.word);
  return new Highlighter([
    { words: those(1), kind: "model-plus" },
    { words: those(-1), kind: "model-minus" },
    { words: state.shared.relevant_words ?? [], kind: "word-relevant" },
    { words: state.shared.irrelevant_words ?? [], kind: "word-irrelevant" },
  ]);
}

/** Address of a doi, or null where the text is none. */
function doiAddress(doi) {
  const bare = doi.trim().replace(/^(https?:\/\/(dx\.)?doi\.org\/|doi:\s*)/i, "");
  return /^10\.\d+\/\S+$/.test(bare) ? `https://doi.org/${encodeURI(bare)}` : null;
}

/** Authors, year and links in one line. */
function sourceLine(record) {
  const parts = [];
  if (record.authors) parts.push(h("bdi", {}, record.authors));
  if (record.year) parts.push(h("bdi", {}, record.year));
  if (record.doi) {
    const address = doiAddress(record.doi);
    parts.push(address ? outerLink(address, record.doi) : h("bdi", {}, record.doi));
  }
  if (record.url) {
    const address = webAddress(record.url);
    parts.push(address ? outerLink(address, new URL(address).host) : h("bdi", {}, record.url));
  }
  if (!parts.length) return null;
  return h("p", { class: "source" }, parts.map((part) => h("span", {}, part)));
}

/** Table of the other columns. */
function fieldList(record, highlighter) {
  if (!record.fields?.length) return null;
  return h(
    "dl", { class: "fields" },
    record.fields.map(([name, value]) => h(
      "div", {}, h("dt", { dir: "auto" }, name), h("dd", {}, textBlock(String(value), highlighter)),
    )),
  );
}

/** My note and tags, or null where there are none. */
function remarks(record) {
  const { note, tags } = record.mine;
  if (!note && !tags?.length) return null;
  return h(
    "div", { class: "remarks" },
    tags?.length ? h("ul", { class: "tags", "aria-label": "Tags" },
      tags.map((tag) => h("li", { dir: "auto" }, tag))) : null,
    note ? h("p", { class: "note", dir: "auto" }, h("strong", {}, "Note: "), note) : null,
  );
}

/** Label or other state of a record as a small mark with a word. */
export function badge(kind, text) {
  const signs = { relevant: "✓", irrelevant: "✕", skipped: "→", conflict: "!", leased: "…" };
  return h("span", { class: `badge ${kind}` },
    signs[kind] ? h("span", { "aria-hidden": "true" }, `${signs[kind]} `) : null, text);
}

/** Badge of my decision about a record, or null. */
export function myBadge(store, mine) {
  if (mine.label !== null) {
    const kind = store.isRelevant(mine.label) ? "relevant" : "irrelevant";
    return badge(kind, store.labelName(mine.label));
  }
  return mine.skipped ? badge("skipped", "Skipped") : null;
}

/**
 * Article of a record.
 *
 * @param {import("./store.js").Record} record
 * @param {{store: any, highlighter: Highlighter, heading?: string|null}} options `heading`: the tag
 *   of the title, null for none
 */
export function recordView(record, { store, highlighter, heading = "h1" }) {
  const title = record.title || (heading === null ? "" : `Record ${record.id}`);
  const mine = myBadge(store, record.mine);
  return h(
    "article", { class: "record" },
    heading ? h(heading, { class: "title", dir: "auto" }, highlighter.nodes(title)) : null,
    mine ? h("p", {}, mine) : null,
    sourceLine(record),
    record.abstract ? textBlock(record.abstract, highlighter) : null,
    !record.abstract && !record.fields?.length
      ? h("p", { class: "muted" }, "This record has no abstract.") : null,
    fieldList(record, highlighter),
    remarks(record),
  );
}

/** End the pieces of long texts that are still to be added to `root`. */
export function stopTexts(root) {
  for (const block of root.querySelectorAll(".text")) block.stop?.();
}

/** Buttons that label a record, for lists; `choose(value)` gets the label. */
export function labelButtons(store, chosen, choose, describe = "") {
  return store.state.labels.slice().reverse().map(({ value, name }) => {
    const relevant = store.isRelevant(value);
    return h(
      "button",
      {
        type: "button", class: relevant ? "relevant" : "irrelevant",
        "aria-pressed": String(chosen === value), "aria-label": describe ? `${name}: ${describe}` : null,
        onclick: () => choose(value),
      },
      h("span", { "aria-hidden": "true" }, relevant ? "✓ " : "✕ "), name,
    );
  });
}

/** Value that the key of "relevant" or "irrelevant" gives. */
export function valueOf(store, name) {
  const values = store.state.labels.map((label) => label.value).sort((a, b) => a - b);
  return name === "relevant" ? store.state.threshold : values[0];
}
