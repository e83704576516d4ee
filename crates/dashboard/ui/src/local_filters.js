// Date filters: the address holds UTC, and the fields show the local time zone, as the lists do.

import { onContent } from "./on_content.js";

const minutes = (at) => at.toISOString().slice(0, 16);

onContent((within) => {
  for (const field of within.querySelectorAll("input[data-utc]:not([data-local])")) {
    const at = new Date(`${field.value}Z`);
    field.dataset.local = "yes";
    if (Number.isNaN(at.getTime())) continue;
    field.value = minutes(new Date(at.getTime() - at.getTimezoneOffset() * 60_000));
    field.defaultValue = field.value;
  }
});

document.addEventListener("formdata", ({ target, formData }) => {
  for (const field of target.querySelectorAll("input[data-utc]")) {
    const at = new Date(field.value);
    if (!Number.isNaN(at.getTime())) formData.set(field.name, minutes(at));
  }
});
