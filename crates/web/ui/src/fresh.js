// Runs a function on the page, and again on whatever htmx brings in.

export function fresh(run) {
  const start = () => run(document.body);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  document.addEventListener("htmx:afterSettle", (event) => run(event.target));
}
