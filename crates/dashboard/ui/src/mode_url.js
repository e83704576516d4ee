// Names the mode in the address of pages that show one, so that a copied link shows the same to everyone.

const { mode } = document.documentElement.dataset;
const url = new URL(location.href);
/** A rejected form keeps its address: with another one, going back would load the form anew. */
const isRejected = document.querySelector("[aria-invalid=true], .wrong") !== null;

if (mode && !isRejected && url.searchParams.get("mode") !== mode) {
  url.searchParams.set("mode", mode);
  history.replaceState(history.state, "", url);
}
