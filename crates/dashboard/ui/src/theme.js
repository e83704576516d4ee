// Applies the light or dark theme before the first paint; loaded separately, in the head.

const ROOT = document.documentElement;

function applyTheme() {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") ROOT.dataset.theme = `heliograph-${chosen}`;
  else delete ROOT.dataset.theme;
}

applyTheme();
ROOT.classList.add("js");
addEventListener("storage", applyTheme);
document.addEventListener("themechange", applyTheme);
