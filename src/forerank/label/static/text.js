/** Texts of records as nodes: highlighted words, and long texts in pieces. */

import { h } from "./dom.js";

// Characters of a text in which words are highlighted; a longer text is not an abstract, and
// marks beyond this length would only cost time.
const HIGHLIGHTED = 200_000;
// Characters per piece of a long text: a piece outside of the window is not laid out.
const PIECE = 8_000;
// Pieces shown at once; the others follow when the browser is idle.
const AT_ONCE = 2;

// A hyphen stays as it is: in a pattern with the flag "u" an escaped one is an error.
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

/** Pattern of a word or phrase: any white space for a blank, "*" at the end for any ending. */
function wordPattern(word) {
  const open = word.endsWith("*");
  const parts = (open ? word.slice(0, -1) : word).trim().split(/\s+/).map(escaped);
  return parts.join("\\s+") + (open ? "[\\p{L}\\p{N}]*" : "");
}

/**
 * Finds the listed words in texts.
 *
 * @param {{words: string[], kind: string}[]} lists the kind becomes the class of the mark; a word
 *   in several lists takes the first
 */
export class Highlighter {
  constructor(lists) {
    this.kinds = [];
    const groups = [];
    for (const { words, kind } of lists) {
      const kept = [...new Set(words.map((word) => word.trim()))].filter((w) => w && w !== "*");
      if (!kept.length) continue;
      kept.sort((a, b) => b.length - a.length);
      groups.push(`(${kept.map(wordPattern).join("|")})`);
      this.kinds.push(kind);
    }
    this.pattern = groups.length
      ? new RegExp(`(?<![\\p{L}\\p{N}])(?:${groups.join("|")})(?![\\p{L}\\p{N}])`, "giu")
      : null;
  }

  /** Text nodes and <mark> elements that make up `text`. */
  nodes(text) {
    if (!this.pattern) return [document.createTextNode(text)];
    const nodes = [];
    let end = 0;
    for (const match of text.matchAll(this.pattern)) {
      const group = match.slice(1).findIndex((part) => part !== undefined);
      if (match.index > end) nodes.push(document.createTextNode(text.slice(end, match.index)));
      nodes.push(h("mark", { class: this.kinds[group] }, match[0]));
      end = match.index + match[0].length;
    }
    if (end < text.length) nodes.push(document.createTextNode(text.slice(end)));
    return nodes;
  }
}

/** End of the piece that starts at `start`: at a blank if one is near, never inside a character. */
function pieceEnd(text, start) {
  const limit = start + PIECE;
  if (limit >= text.length) return text.length;
  const blank = text.lastIndexOf(" ", limit);
  if (blank > start + PIECE / 2) return blank + 1;
  const code = text.charCodeAt(limit);
  return code >= 0xdc00 && code <= 0xdfff ? limit - 1 : limit;
}

/**
 * Element with a text of any length. A long text comes in pieces, of which the first are there at
 * once and the others when the browser is idle; `element.stop()` ends that.
 */
export function textBlock(text, highlighter) {
  const block = h("div", { class: "text", dir: "auto" });
  let stopped = false;
  block.stop = () => { stopped = true; };
  if (text.length <= PIECE) {
    block.append(...highlighter.nodes(text));
    return block;
  }
  let start = 0;
  const addPiece = () => {
    const end = pieceEnd(text, start);
    const part = text.slice(start, end);
    const nodes = start < HIGHLIGHTED ? highlighter.nodes(part) : [part];
    block.append(h("div", { class: "piece" }, nodes));
    start = end;
  };
  for (let piece = 0; piece < AT_ONCE && start < text.length; piece++) addPiece();
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));
  const goOn = () => {
    if (stopped || start >= text.length) return;
    addPiece();
    later(goOn);
  };
  later(goOn);
  return block;
}
