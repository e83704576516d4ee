// A form is sent once: its buttons rest until the answer is there.

const PATIENCE = 8000;

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  // After this turn, so that the button's own name and value are still sent.
  setTimeout(() => rest(form, true));
  setTimeout(() => rest(form, false), PATIENCE);
});

function rest(form, resting) {
  if (!resting) delete form.dataset.sent;
  for (const button of form.querySelectorAll("button:not([type=button])")) {
    button.setAttribute("aria-disabled", String(resting));
    button.classList.toggle("resting", resting);
  }
}

// A page that comes back from the browser's memory may be sent again.
addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("form[data-sent]").forEach((form) => rest(form, false));
});
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.target.closest?.("form");
  if (form?.dataset.sent) rest(form, false);
  if (form?.hasAttribute("data-clear") && event.detail.successful) form.reset();
});

// What is wrong is where its reader goes on; what led back to sign-in is seen as a page of its own.
document.addEventListener("DOMContentLoaded", () => document.querySelector("[aria-invalid=true]")?.focus());
document.addEventListener("htmx:beforeSwap", (event) => {
  if (new URL(event.detail.xhr.responseURL || location.href).pathname !== "/sign-in") return;
  event.preventDefault();
  location.reload();
});

// Quick replies: a button that fills the field it names.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-fill]");
  const field = button && document.getElementById(button.dataset.fillInto);
  if (!field) return;
  field.value = button.dataset.fill;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
});
