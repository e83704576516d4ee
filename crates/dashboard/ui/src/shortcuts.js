// Keyboard shortcuts: "/" focuses the search field, Ctrl+Enter submits the form of a text area.

const isEditable = (node) => node.closest?.("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.closest?.("textarea")?.form?.requestSubmit();
  }
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isEditable(event.target)) return;
  const search = document.querySelector("input[type=search]");
  if (!search) return;
  event.preventDefault();
  search.focus();
  search.select();
});
