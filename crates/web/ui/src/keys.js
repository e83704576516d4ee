// "/" goes to the search field, Escape closes what is open, Ctrl+Enter sends a text.

const writing = (node) => node.closest?.("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.closest?.("textarea")?.form?.requestSubmit();
  }
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || writing(event.target)) return;
  const search = document.querySelector("input[type=search]");
  if (!search) return;
  event.preventDefault();
  search.focus();
  search.select();
});
