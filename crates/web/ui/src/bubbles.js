// A conversation shows its newest bubble, unless its reader has scrolled back; a phone buzzes for it.

import { fresh } from "./fresh.js";

const NEAR = 80;

function newest(within) {
  const lists = within.matches?.("[data-newest]") ? [within] : within.querySelectorAll("[data-newest]");
  for (const list of lists) {
    if (!list.dataset.away) list.scrollTop = list.scrollHeight;
  }
}

document.addEventListener(
  "scroll",
  ({ target: list }) => {
    if (!list.dataset || !("newest" in list.dataset)) return;
    if (list.scrollHeight - list.scrollTop - list.clientHeight > NEAR) list.dataset.away = "yes";
    else delete list.dataset.away;
  },
  true,
);

const last = () => [...document.querySelectorAll(".phone .bubble-in")].at(-1)?.id;
let known;

function buzz() {
  const phone = document.querySelector(".phone");
  const id = last();
  if (phone && known !== undefined && id && id !== known) {
    phone.classList.add("buzz");
    setTimeout(() => phone.classList.remove("buzz"), 400);
  }
  known = id ?? "";
}

fresh((within) => {
  newest(within);
  buzz();
  const around = within.closest?.("[data-newest]");
  if (around) newest(around);
});
