// Shows <time> elements, which hold UTC, in the local time zone, with the exact time as title.

import { onContent } from "./on_content.js";

const today = { hour: "2-digit", minute: "2-digit" };
const day = { day: "numeric", month: "short" };
const thisYear = { ...day, ...today };
const longAgo = { ...day, year: "numeric" };
const exact = { dateStyle: "medium", timeStyle: "long" };
const STYLES = { clock: { ...today, second: "2-digit" }, day: longAgo, short: today };

function style(node, at, now) {
  const fixed = STYLES[node.dataset.time];
  if (fixed) return fixed;
  if (node.dataset.time === "brief") return at.toDateString() === now.toDateString() ? today : day;
  if (at.toDateString() === now.toDateString()) return today;
  return at.getFullYear() === now.getFullYear() ? thisYear : longAgo;
}

onContent((within) => {
  const now = new Date();
  for (const node of within.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(node.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    node.textContent = new Intl.DateTimeFormat(undefined, style(node, at, now)).format(at);
    node.title = new Intl.DateTimeFormat(undefined, exact).format(at);
    node.dataset.local = "yes";
  }
});
