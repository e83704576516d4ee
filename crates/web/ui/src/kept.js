// What somebody typed into a form whose session had ended is in it again once they are back on its page. Secrets, files
// and what they did not type are not kept; nothing is kept beyond the next page that is not about signing in.

const PLACE = "typed";
const TYPED = "textarea, select, input:not([type=hidden], [type=password], [type=file], [type=checkbox], [type=radio])";

const entering = location.pathname.startsWith("/sign-in");

function recall() {
  const kept = JSON.parse(sessionStorage.getItem(PLACE) ?? "null");
  if (!kept) return;
  if (entering) return sessionStorage.setItem(PLACE, JSON.stringify({ ...kept, back: true }));
  sessionStorage.removeItem(PLACE);
  if (!kept.back || kept.page !== location.pathname) return;
  const form = [...document.forms].find((f) => f.getAttribute("action") === kept.action && f.method === "post");
  for (const [name, value] of form ? kept.fields : []) {
    const field = form.elements[name];
    if (!field?.matches?.(TYPED)) continue;
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

try {
  recall();
} catch {
  sessionStorage.removeItem(PLACE);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (entering || event.defaultPrevented || form.method !== "post" || !form.closest("main")) return;
  const fields = [...form.elements].filter((f) => f.name && f.matches(TYPED)).map((f) => [f.name, f.value]);
  if (!fields.some(([, value]) => value)) return;
  const kept = { page: location.pathname, action: form.getAttribute("action"), fields };
  sessionStorage.setItem(PLACE, JSON.stringify(kept));
});

// A link that signs in goes on by itself.
document.querySelector("form[data-now]")?.requestSubmit();
