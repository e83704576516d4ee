// Chooses light or dark before anything is painted; loaded alone, in the head.

const ROOT = document.documentElement;

function dress() {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") ROOT.dataset.theme = `heliograph-${chosen}`;
  else delete ROOT.dataset.theme;
}

dress();
ROOT.classList.add("js");
addEventListener("storage", dress);
document.addEventListener("themechange", dress);
