/** Keys: what each does, which are bound, and the listener. */

/**
 * Actions in the order of the settings page. A `decision` is not repeated while its key is held.
 *
 * @type {{name: string, text: string, key: string, decision?: boolean}[]}
 */
export const ACTIONS = [
  { name: "relevant", text: "Relevant", key: "r", decision: true },
  { name: "irrelevant", text: "Irrelevant", key: "i", decision: true },
  { name: "skip", text: "Skip", key: "s", decision: true },
  { name: "undo", text: "Undo", key: "u", decision: true },
  { name: "note", text: "Note", key: "n" },
  { name: "tags", text: "Tags", key: "t" },
  { name: "words", text: "Words of the model", key: "h" },
  { name: "criteria", text: "Criteria", key: "c" },
  { name: "search", text: "Search", key: "/" },
  { name: "down", text: "Next in a list", key: "j" },
  { name: "up", text: "Previous in a list", key: "k" },
  { name: "mark", text: "Mark in a sweep", key: "x" },
  { name: "open", text: "Open or close in a list", key: "o" },
  { name: "rest", text: "Sweep: the rest is irrelevant", key: "d", decision: true },
  { name: "go", text: "Go to a screen (then its letter)", key: "g" },
  { name: "help", text: "Help", key: "?" },
];

/** Sets of keys; a name that a set leaves out has its default. */
export const PRESETS = {
  default: { text: "forerank: r relevant, i irrelevant, s skip", keys: {} },
  rayyan: {
    text: "Rayyan: i include, e exclude, u undecided",
    keys: { relevant: "i", irrelevant: "e", skip: "u", undo: "z" },
  },
};

// Keys that always work in lists, beside those that can be changed.
const FIXED = { arrowdown: "down", arrowup: "up" };

/** Key of each action, from the settings of a person. */
export function boundKeys(settings) {
  const preset = Object.hasOwn(PRESETS, settings.preset) ? PRESETS[settings.preset] : PRESETS.default;
  const keys = {};
  for (const { name, key } of ACTIONS) {
    keys[name] = settings.keys?.[name] ?? preset.keys[name] ?? key;
  }
  return keys;
}

/** Key of an event in small letters; on a keyboard without Latin letters, by its place. */
export function keyOf(event) {
  const key = event.key.toLowerCase();
  const latin = /^Key([A-Z])$/.exec(event.code);
  if (key.length === 1 && key > "\u007f" && latin) return latin[1].toLowerCase();
  return key;
}

const TYPING = "input:not([type=checkbox]):not([type=radio]):not([type=button]), textarea, select";

/**
 * Listen to key presses and call `perform(name)`, which says whether the action exists here.
 *
 * @param {() => {keys: Object<string, string>, on: boolean, grades: number[]}} settings
 * @param {(name: string, detail?: any) => boolean} perform
 * @param {Object<string, string>} letters screens by the letter that follows the "go" key
 */
export function listen(settings, perform, letters) {
  // Time until which the letter of a screen is awaited, in milliseconds.
  let goUntil = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const target = /** @type {Element} */ (event.target);
    if (target.matches(TYPING)) return;
    const { keys, on, grades } = settings();
    const key = keyOf(event);
    if (!on) return;
    if (event.timeStamp < goUntil && letters[key]) {
      goUntil = 0;
      event.preventDefault();
      perform("screen", letters[key]);
      return;
    }
    goUntil = 0;
    const name = Object.keys(keys).find((action) => keys[action] === key) ?? FIXED[key];
    const grade = /^[0-9]$/.test(key) && grades.includes(Number(key)) ? Number(key) : null;
    if (name === "go") goUntil = event.timeStamp + 1500;
    else if (name === undefined && grade === null) return;
    else if (event.repeat && (grade !== null || isDecision(name))) {
      event.preventDefault();
      return;
    } else if (!(name ? perform(name) : perform("grade", grade))) return;
    event.preventDefault();
  });
}

const isDecision = (name) => ACTIONS.find((action) => action.name === name)?.decision ?? false;
