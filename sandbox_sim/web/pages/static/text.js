// The texts of the scripts: the section `script` of texts/english.toml.

import texts from "./texts.js";

/** A text with its values filled in; `count` chooses between its two forms, where it has two. */
export function text(name, values = {}) {
  const found = texts[name];
  const form = typeof found === "string" ? found : found[values.count === 1 ? "one" : "other"];
  return form.replace(/{(\w+)}/g, (_, value) => values[value]);
}
