/* Copy buttons, three single keys, the browser's zone, and controls that need a script. */
(() => {
  "use strict";
  const root = document.documentElement;
  const status = document.getElementById("live-status");

  const wake = () => {
    for (const each of document.querySelectorAll("button.copy[hidden], [data-needs-script][hidden]"))
      each.hidden = false;
  };
  wake();
  for (const name of ["htmx:after:swap", "htmx:afterSwap"])
    document.addEventListener(name, () => setTimeout(wake));

  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of document.querySelectorAll("input[name=browser_zone]")) field.value = here;
  const named = document.getElementById("browser-zone");
  if (named) named.textContent = here;
  const moved = document.getElementById("zone-moved");
  if (moved && root.dataset.zone !== here) {
    moved.querySelector("b").textContent = here;
    moved.hidden = false;
  }

  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const before = status.classList.contains("stale") ? status.textContent : "";
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.classList.add("done");
      status.textContent = "Copied.";
    } catch {
      select(button.previousElementSibling);
      status.textContent = "Selected: copy it with your keyboard.";
    }
    setTimeout(() => {
      button.classList.remove("done");
      status.textContent = status.classList.contains("stale") ? before : "";
    }, 1500);
  });

  const keys = {
    "/": () => document.getElementById("q")?.focus(),
    r: () => document.getElementById("live")?.click(),
    "?": () => {
      const menu = document.querySelector("details.me");
      if (menu) menu.open = !menu.open;
    },
  };
  document.addEventListener("keydown", (event) => {
    if (root.dataset.keys === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
