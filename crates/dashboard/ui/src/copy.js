// Copy buttons: data-copy is the text; data-copy-from is the ID of the element with the text.

const CONFIRMATION_MS = 1600;

function text(button) {
  const from = button.dataset.copyFrom;
  return from ? document.getElementById(from)?.textContent.trim() ?? "" : button.dataset.copy;
}

async function copy(button) {
  const label = button.querySelector("[data-label]") ?? button;
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(text(button));
  } catch {
    // Pages over plain HTTP have no clipboard API.
    if (!copyWithCommand(text(button))) return;
  }
  if (button.dataset.copied) return;
  button.dataset.copied = "yes";
  label.textContent = "Copied";
  document.getElementById("announcements")?.replaceChildren("Copied");
  setTimeout(() => {
    label.textContent = before;
    delete button.dataset.copied;
  }, CONFIRMATION_MS);
}

function copyWithCommand(value) {
  const area = document.createElement("textarea");
  area.value = value;
  area.className = "sr-only";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy], [data-copy-from]");
  if (button) copy(button);
});
