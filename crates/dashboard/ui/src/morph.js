// The htmx swap style "morph": unchanged elements keep their focus and scroll position.

import htmx from "htmx.org";
import { Idiomorph } from "idiomorph/dist/idiomorph.esm.js";

const sameTime = (old, fresh) => old.localName === "time" && old.dateTime === fresh.dateTime;
const typedInto = (old) => old.matches?.("input:not([type=hidden]), textarea, select, [data-keep]");

const callbacks = {
  beforeNodeMorphed: (old, fresh) => !(sameTime(old, fresh) || typedInto(old)),
  beforeAttributeUpdated: (name, node) => !["data-away", "data-ready"].includes(name) && !(name === "open" && ["details", "dialog"].includes(node.localName)),
};

htmx.defineExtension("morph", {
  isInlineSwap: (style) => style === "morph",
  handleSwap(style, target, fragment) {
    if (style === "morph") return Idiomorph.morph(target, fragment.childNodes, { morphStyle: "outerHTML", callbacks });
    if (style === "morph:innerHTML") {
      return Idiomorph.morph(target, fragment.childNodes, { morphStyle: "innerHTML", callbacks });
    }
    return false;
  },
});
