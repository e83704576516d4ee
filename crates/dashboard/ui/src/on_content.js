// Runs a function on the page, and again on all content that htmx inserts.

export function onContent(run) {
  const start = () => run(document.body);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  document.addEventListener("htmx:afterSettle", (event) => run(event.target));
}
