// Restores the input of a form that was submitted with an expired session, once the user has signed in again and is back
// on its page. Passwords, files and hidden fields are not stored. Other pages than sign-in discard the stored input.

const KEY = "typed";
const TEXT_FIELDS = "textarea, select, input:not([type=hidden], [type=password], [type=file], [type=checkbox], [type=radio])";

const signingIn = location.pathname.startsWith("/sign-in");

function restore() {
  const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  if (!stored) return;
  if (signingIn) return sessionStorage.setItem(KEY, JSON.stringify({ ...stored, signedIn: true }));
  sessionStorage.removeItem(KEY);
  if (!stored.signedIn || stored.page !== location.pathname) return;
  const form = [...document.forms].find((f) => f.getAttribute("action") === stored.action && f.method === "post");
  for (const [name, value] of form ? stored.fields : []) {
    const field = form.elements[name];
    if (!field?.matches?.(TEXT_FIELDS)) continue;
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

try {
  restore();
} catch {
  sessionStorage.removeItem(KEY);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (signingIn || event.defaultPrevented || form.method !== "post" || !form.closest("main")) return;
  const fields = [...form.elements].filter((f) => f.name && f.matches(TEXT_FIELDS)).map((f) => [f.name, f.value]);
  if (!fields.some(([, value]) => value)) return;
  const stored = { page: location.pathname, action: form.getAttribute("action"), fields };
  sessionStorage.setItem(KEY, JSON.stringify(stored));
});
