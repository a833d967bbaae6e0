/* Keeps marked regions fresh. A region asks for itself when `live:tick` is raised on the body;
   this file decides when: not in a hidden tab, not while somebody types in the region or reads a
   dialog, ever more slowly while the server does not answer. It tells the server which version a
   region shows, so that an answer which would change nothing is empty. Without it the page is
   simply as of its own time. */
(() => {
  "use strict";
  const status = document.getElementById("live-status");
  const regions = () => [...document.querySelectorAll("[data-live]")];
  const regionOf = (event) => event.detail?.ctx?.sourceElement?.closest?.("[data-live]");
  const versions = new Map();
  let misses = 0;
  let timer = 0;

  const busy = () => document.hidden || document.querySelector("dialog[open]") ||
    regions().some((region) => region.contains(document.activeElement) &&
      document.activeElement.matches("input, select, textarea"));

  const plan = () => {
    clearTimeout(timer);
    const waits = regions().map((region) => Number(region.dataset.live));
    if (!waits.length) return;
    const slower = Math.min(2 ** misses, 6) * (misses ? 0.8 + Math.random() * 0.4 : 1);
    timer = setTimeout(tick, Math.min(...waits) * 1000 * slower);
  };

  const tick = () => {
    if (!busy()) document.body.dispatchEvent(new Event("live:tick"));
    plan();
  };

  const say = (text, stale) => {
    status.classList.toggle("stale", stale);
    if (status.textContent !== text) status.textContent = text;
  };

  const missed = () => {
    misses += 1;
    for (const region of regions()) {
      region.dataset.stale = "";
      region.removeAttribute("aria-busy");
    }
    const asOf = regions()[0]?.dataset.asOf;
    if (misses > 1 && asOf) say(`Not refreshed since ${asOf}, which was the last good time. Trying again.`, true);
    plan();
  };

  const answered = () => {
    misses = 0;
    for (const region of regions()) {
      delete region.dataset.stale;
      region.removeAttribute("aria-busy");
    }
    if (status.classList.contains("stale")) say("", false);
  };

  /* What is announced after a swap: how many rows are new, and the region's own words where they
     changed. Where the list goes on to other pages a row may only have moved up, so none is
     called new. */
  const words = () => document.querySelector("[data-live] [data-announce]")?.textContent.trim();
  const rows = () => new Set([...document.querySelectorAll("[data-live] tbody a[href^='/n/']")]
    .map((link) => link.getAttribute("href")));
  const isWhole = () => !document.querySelector("[data-live] .pager a[rel]");
  let told = words();
  let known = rows();
  const announce = () => {
    const [text, now] = [words(), rows()];
    const fresh = isWhole() ? [...now].filter((each) => !known.has(each)).length : 0;
    const parts = [fresh ? `${fresh} new` : "", text && text !== told ? text : ""];
    say(parts.filter(Boolean).join(", now "), false);
    told = text ?? told;
    known = now;
    plan();
  };

  document.addEventListener("htmx:config:request", (event) => {
    const region = regionOf(event);
    if (!region) return;
    region.setAttribute("aria-busy", "true");
    const version = versions.get(region.id);
    if (version) event.detail.ctx.request.headers["X-If-Version"] = version;
  });

  document.addEventListener("htmx:after:request", (event) => {
    const { status: code, headers } = event.detail.ctx.response;
    const region = regionOf(event);
    if (!region || code >= 400) return;
    answered();
    versions.set(region.id, headers.get("X-Version"));
    if (code !== 204) return;
    const asOf = decodeURIComponent(headers.get("X-As-Of") ?? "");
    const shown = [...region.querySelectorAll("time")]
      .find((each) => /as of\s*$/.test(each.previousSibling?.textContent ?? ""));
    if (asOf) region.dataset.asOf = asOf;
    if (asOf && shown) shown.textContent = asOf;
    plan();
  });

  for (const name of ["htmx:after:swap", "htmx:afterSwap"])
    document.addEventListener(name, (event) => {
      const { ctx, xhr } = event.detail ?? {};
      if ((ctx?.response?.status ?? xhr?.status ?? 200) >= 400) return;
      answered();
      setTimeout(announce);
    });
  for (const name of ["htmx:response:error", "htmx:error", "htmx:responseError", "htmx:sendError"])
    document.addEventListener(name, missed);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) tick(); });
  plan();
})();
