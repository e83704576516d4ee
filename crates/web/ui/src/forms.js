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
  if (form?.hasAttribute("data-clear") && event.detail.successful && !signedOut(event.detail.xhr)) form.reset();
});

// What is wrong is where its reader goes on.
document.addEventListener("DOMContentLoaded", () => document.querySelector("[aria-invalid=true]")?.focus());

// A session that has ended leads to sign-in; but what somebody has typed stays, and they are told.
const signedOut = (xhr) => new URL(xhr.responseURL || location.href).pathname === "/sign-in";
const typed = () =>
  [...document.querySelectorAll("input:not([type=hidden]), textarea")].some((f) => f.value !== f.defaultValue);

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!signedOut(event.detail.xhr)) return;
  event.preventDefault();
  if (!typed()) return location.reload();
  if (document.getElementById("signed-out")) return;
  const notice = document.createElement("div");
  notice.id = "signed-out";
  notice.className = "notice notice-bad";
  notice.role = "alert";
  const link = Object.assign(document.createElement("a"), { href: "/sign-in", target: "_blank", className: "link" });
  link.textContent = "Sign in in another tab";
  const text = document.createElement("p");
  text.append("You are signed out; what you typed is still here. ", link, ", reload this page there, and copy it over.");
  notice.append(text);
  document.getElementById("main")?.prepend(notice);
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
