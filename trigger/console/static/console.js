// What a page gains where scripts run: it refreshes itself, says when it could not, and shows times in the reader's zone.
"use strict";
(() => {
  const main = document.getElementById("main");
  const banner = document.getElementById("unrefreshed");
  const seconds = Number(main.dataset.refresh);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const full = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "long"});
  const short = new Intl.DateTimeFormat(undefined, {weekday: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short"});
  let last = new Date();

  function showTimes(root) {
    for (const one of root.querySelectorAll("time[datetime]")) {
      const instant = new Date(one.dateTime);
      if (!Number.isNaN(instant.valueOf())) one.title = full.format(instant);
    }
    for (const one of root.querySelectorAll("[data-instant]")) {
      const instant = new Date(one.dataset.instant);
      one.textContent = zone === "UTC" || Number.isNaN(instant.valueOf()) ? "" : `${short.format(instant)}, where you are`;
    }
  }

  // What the reader has opened, is writing or has marked stays as it is.
  function isBusy() {
    const active = document.activeElement;
    const writes = active && main.contains(active) && active.matches("input, textarea, select");
    const marks = document.getSelection();
    return Boolean(writes || main.querySelector("details.act[open]") || (marks && !marks.isCollapsed && main.contains(marks.anchorNode)));
  }

  function keepOpen(name, node, kind) {
    return !(name === "open" && node.nodeName === "DETAILS") && !(name === "title" && node.nodeName === "TIME" && kind === "remove");
  }

  async function refresh() {
    if (document.hidden || isBusy()) return;
    try {
      const answer = await fetch(location.href, {headers: {Accept: "text/html"}, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(10000)});
      if (answer.redirected || answer.status === 401) throw new Error("you are no longer signed in: load the page again");
      if (answer.status >= 400 && answer.status !== 503) throw new Error(`answered ${answer.status}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      if (!fresh || isBusy()) return;
      if (answer.status === 503 && document.querySelector("main h1")) throw new Error("the database does not answer");
      showTimes(fresh);
      Idiomorph.morph(main, fresh.innerHTML, {morphStyle: "innerHTML", callbacks: {beforeAttributeUpdated: keepOpen}});
      const footer = document.querySelector("footer");
      Idiomorph.morph(footer, page.querySelector("footer").innerHTML, {morphStyle: "innerHTML"});
      showTimes(footer);
      last = new Date();
      banner.hidden = true;
    } catch (error) {
      banner.textContent = `Not refreshed since ${short.format(last)}: ${error.name === "TypeError" ? "the console does not answer" : error.message}. What stands here is from then.`;
      banner.hidden = false;
    }
  }

  showTimes(document);
  if (seconds > 0) setInterval(refresh, seconds * 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && seconds > 0) refresh(); });
})();
