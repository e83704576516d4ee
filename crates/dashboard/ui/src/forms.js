// Prevents double submission: the buttons of a form are disabled until the response arrives.

const TIMEOUT_MS = 8000;

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  // Delayed, so that the name and value of the clicked button are still submitted.
  setTimeout(() => setBusy(form, true));
  setTimeout(() => setBusy(form, false), TIMEOUT_MS);
});

function setBusy(form, busy) {
  if (!busy) delete form.dataset.sent;
  for (const button of form.querySelectorAll("button:not([type=button])")) {
    button.setAttribute("aria-disabled", String(busy));
    button.classList.toggle("resting", busy);
  }
}

// A page restored from the back/forward cache may be submitted again.
addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("form[data-sent]").forEach((form) => setBusy(form, false));
});
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.target.closest?.("form");
  if (form?.dataset.sent) setBusy(form, false);
  if (form?.hasAttribute("data-clear") && event.detail.successful && !signedOut(event.detail.xhr)) form.reset();
});

// Moves the focus to the first invalid field.
document.addEventListener("DOMContentLoaded", () => document.querySelector("[aria-invalid=true]")?.focus());

// When the session has expired, keeps the typed text on the page and shows a notice instead of the sign-in page.
const signedOut = (xhr) => new URL(xhr.responseURL || location.href).pathname === "/sign-in";
const hasInput = () =>
  [...document.querySelectorAll("input:not([type=hidden]), textarea")].some((f) => f.value !== f.defaultValue);

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!signedOut(event.detail.xhr)) return;
  event.preventDefault();
  if (!hasInput()) return location.reload();
  if (document.getElementById("signed-out")) return;
  const notice = document.createElement("div");
  notice.id = "signed-out";
  notice.className = "notice notice-bad";
  notice.role = "alert";
  const link = Object.assign(document.createElement("a"), { href: "/sign-in", target: "_blank", className: "link" });
  link.textContent = "Sign in in another tab";
  const text = document.createElement("p");
  text.append("You are signed out. Your input is still on this page: ", link, ", open this page there and copy it over.");
  notice.append(text);
  document.getElementById("main")?.prepend(notice);
});

// Quick replies: a button with data-fill fills the field named by data-fill-into.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-fill]");
  const field = button && document.getElementById(button.dataset.fillInto);
  if (!field) return;
  field.value = button.dataset.fill;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
});
