// Live updates wait while they would remove what the user does: an open dialog, an error of a form, or unsent text. They
// catch up afterwards.

import htmx from "htmx.org";

const TRIGGERS = /\b(sse:[a-z]+|every )/;
const FIELDS = "input:not([type=hidden], [type=checkbox], [type=radio], [type=file]), textarea";
const waiting = new Set();

const isLive = ({ elt, requestConfig }) => requestConfig?.verb === "get" && TRIGGERS.test(elt.getAttribute("hx-trigger") ?? "");
const isTyped = (field) => field.value !== field.defaultValue;

function isInUse(part) {
  return part.querySelector("dialog[open], .wrong, [aria-invalid=true]") || [...part.querySelectorAll(FIELDS)].some(isTyped);
}

// A page shows one mode; after a switch in another tab, the server refuses to mix both.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  const { mode } = document.documentElement.dataset;
  if (mode && detail.verb === "get") detail.parameters.mode = mode;
});

// Before the request, and before its response is shown: the user may have begun to type in between.
for (const moment of ["htmx:beforeRequest", "htmx:beforeSwap"]) {
  document.addEventListener(moment, (event) => {
    const { elt } = event.detail;
    if (!isLive(event.detail) || !isInUse(elt)) return;
    event.preventDefault();
    waiting.add(elt);
  });
}

function catchUp() {
  for (const part of waiting) {
    if (part.isConnected && isInUse(part)) continue;
    waiting.delete(part);
    const event = TRIGGERS.exec(part.getAttribute("hx-trigger") ?? "")?.[1];
    if (part.isConnected && event?.startsWith("sse:")) htmx.trigger(part, event);
  }
}

for (const moment of ["input", "reset", "inputdone"]) document.addEventListener(moment, () => setTimeout(catchUp));
