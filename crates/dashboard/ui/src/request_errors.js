// Shows what went wrong with a request of htmx, in the words of the server's error page, until a request succeeds.

const OFFLINE = "The server cannot be reached. Check your connection; what you typed is still on this page.";
/** The time within which a stream of live updates usually comes back. */
const RECONNECT_MS = 5000;

const box = () => document.getElementById("request-error");
let reconnecting;

function show(text) {
  const node = box();
  if (!node) return;
  node.hidden = false;
  const shown = node.querySelector("[data-text]");
  if (shown.textContent !== text) shown.textContent = text;
}

function hide() {
  clearTimeout(reconnecting);
  reconnecting = undefined;
  const node = box();
  if (!node || node.hidden) return;
  node.hidden = true;
  node.querySelector("[data-text]").textContent = "";
}

/** Returns the title and the explanation of an error page. */
function explanation(xhr) {
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html").getElementById("main");
  const text = (selector) => page?.querySelector(selector)?.textContent.trim() ?? "";
  const said = [text("h1"), text("[data-explanation]")].filter(Boolean).join(": ");
  return said || `The server could not answer (status ${xhr.status}). Try again in a moment.`;
}

document.addEventListener("htmx:responseError", (event) => show(explanation(event.detail.xhr)));
for (const moment of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(moment, () => show(OFFLINE));
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) hide();
});
document.addEventListener("htmx:sseError", () => {
  reconnecting ??= setTimeout(() => show(OFFLINE), RECONNECT_MS);
});
document.addEventListener("htmx:sseOpen", () => {
  clearTimeout(reconnecting);
  reconnecting = undefined;
  if (box()?.querySelector("[data-text]").textContent === OFFLINE) hide();
});
document.addEventListener("click", (event) => {
  if (event.target.closest?.("#request-error [data-dismiss]")) hide();
});
