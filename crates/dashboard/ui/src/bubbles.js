// Scrolls conversations to the newest message, unless the user has scrolled back, and shakes the phone for new messages.

import { onContent } from "./on_content.js";

const NEAR_END = 80;

function scrollToNewest(within) {
  const lists = within.matches?.("[data-newest]") ? [within] : within.querySelectorAll("[data-newest]");
  for (const list of lists) {
    if (!list.dataset.away) list.scrollTop = list.scrollHeight;
  }
}

document.addEventListener(
  "scroll",
  ({ target: list }) => {
    if (!list.dataset || !("newest" in list.dataset)) return;
    if (list.scrollHeight - list.scrollTop - list.clientHeight > NEAR_END) list.dataset.away = "yes";
    else delete list.dataset.away;
  },
  true,
);

const lastInbound = () => [...document.querySelectorAll(".phone .bubble-in")].at(-1)?.id;
let lastId;

function buzz() {
  const phone = document.querySelector(".phone");
  const id = lastInbound();
  if (phone && lastId !== undefined && id && id !== lastId) {
    phone.classList.add("buzz");
    setTimeout(() => phone.classList.remove("buzz"), 400);
  }
  lastId = id ?? "";
}

onContent((within) => {
  scrollToNewest(within);
  buzz();
  const conversation = within.closest?.("[data-newest]");
  if (conversation) scrollToNewest(conversation);
});
