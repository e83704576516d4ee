// The switch between light, dark and system theme, stored in the browser.

import { onContent } from "./on_content.js";

const chosen = () => localStorage.getItem("theme") ?? "system";

function show(within) {
  for (const button of within.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === chosen()));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-theme-choice]");
  if (!button) return;
  const choice = button.dataset.themeChoice;
  if (choice === "system") localStorage.removeItem("theme");
  else localStorage.setItem("theme", choice);
  document.dispatchEvent(new Event("themechange"));
  show(document.body);
});

onContent(show);
