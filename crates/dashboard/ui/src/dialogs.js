// Forms and confirmations behind a button: a <details data-modal> whose <dialog> opens as a modal. The browser keeps the
// focus inside, closes it on Escape, and returns the focus to the button.

import { onContent } from "./on_content.js";

const detailsOf = (dialog) => dialog.closest("details[data-modal]");
let ids = 0;

function open(details) {
  const dialog = details.querySelector("dialog");
  if (!dialog || dialog.open) return;
  details.open = true;
  name(dialog);
  // The dialog has no layout before, and what is not laid out cannot get the focus.
  dialog.getBoundingClientRect();
  dialog.showModal();
  const first = ["[aria-invalid=true]", "[autofocus]", "input:not([type=hidden]), textarea, select"];
  first.map((selector) => dialog.querySelector(selector)).find(Boolean)?.focus();
}

/** Names the dialog by its heading, and describes it by its question. */
function name(dialog) {
  const parts = { "aria-labelledby": "h2", "aria-describedby": "[data-question]" };
  for (const [attribute, selector] of Object.entries(parts)) {
    const node = dialog.querySelector(selector);
    if (!node) continue;
    node.id ||= `dialog-${++ids}`;
    dialog.setAttribute(attribute, node.id);
  }
}

function isOutside(dialog, { clientX, clientY }) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

document.addEventListener("click", (event) => {
  const { target } = event;
  const summary = target.closest?.("details[data-modal] > summary");
  if (summary) {
    event.preventDefault();
    open(summary.parentElement);
  } else if (target.closest?.("[data-close]")) {
    target.closest("dialog")?.close();
  } else if (target.localName === "dialog" && isOutside(target, event)) {
    target.close();
  }
});

document.addEventListener(
  "close",
  ({ target }) => {
    const details = target.localName === "dialog" && detailsOf(target);
    if (!details) return;
    details.open = false;
    details.querySelector("summary").focus();
    details.dispatchEvent(new Event("inputdone", { bubbles: true }));
  },
  true,
);

// A form with errors is open when its page loads.
onContent((within) => within.querySelectorAll("details[data-modal][open]").forEach(open));
