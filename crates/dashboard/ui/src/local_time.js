// Shows <time> elements, which hold UTC, in the local time zone, with the exact time as title.

import { onContent } from "./on_content.js";

const today = { hour: "numeric", minute: "2-digit" };
const day = { day: "numeric", month: "short" };
const thisYear = { ...day, ...today };
const longAgo = { ...day, year: "numeric" };
const exact = { dateStyle: "medium", timeStyle: "long" };
const dated = { ...longAgo, ...today };
const STYLES = { clock: { ...today, second: "2-digit" }, day: longAgo, short: today, dated };

function style(node, at, now) {
  const fixed = STYLES[node.dataset.time];
  if (fixed) return fixed;
  if (node.dataset.time === "brief") return at.toDateString() === now.toDateString() ? today : day;
  if (at.toDateString() === now.toDateString()) return today;
  return at.getFullYear() === now.getFullYear() ? thisYear : longAgo;
}

/** Returns the day, in words when it is close. */
function daily(at, now) {
  const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  const shown = at.getFullYear() === now.getFullYear() ? { weekday: "long", ...day } : longAgo;
  return new Intl.DateTimeFormat(undefined, shown).format(at);
}

onContent((within) => {
  const now = new Date();
  for (const node of within.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(node.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = () => new Intl.DateTimeFormat(undefined, style(node, at, now)).format(at);
    node.textContent = node.dataset.time === "daily" ? daily(at, now) : text();
    node.title = new Intl.DateTimeFormat(undefined, exact).format(at);
    node.dataset.local = "yes";
  }
});
