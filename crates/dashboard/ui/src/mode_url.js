// Names the mode in the address of pages that show one, so that a copied link shows the same to everyone.

const { mode } = document.documentElement.dataset;
const url = new URL(location.href);

if (mode && url.searchParams.get("mode") !== mode) {
  url.searchParams.set("mode", mode);
  history.replaceState(history.state, "", url);
}
