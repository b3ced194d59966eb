// Keeps the page current: asks every second whether anything changed, then fetches the page again and exchanges the
// parts that are marked data-live. Without this script the page is the same, as of when it was loaded.
"use strict";

(() => {
  const status = document.getElementById("live");
  if (!status) return;
  const pause = 1000;
  let seen = null;
  let alarms = null;

  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  const ask = async (path, kind) => {
    const answer = await fetch(path, { headers: { Accept: kind } }).catch(() => null);
    return answer && answer.ok && !answer.redirected ? answer.text() : null;
  };

  async function look() {
    if (!document.hidden) {
      const now = await ask("/changes", "application/json");
      if (now === null) say("Reconnecting");
      else if (seen === null || status.textContent === "Reconnecting") say("Live");
      if (now !== null && seen !== null && now !== seen) await refresh();
      seen = now ?? seen;
    }
    setTimeout(look, pause);
  }

  async function refresh() {
    const text = await ask(location.href, "text/html");
    if (text === null) return;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (other && !busy(part) && part.innerHTML !== other.innerHTML) exchange(part, other);
    }
    document.title = fresh.title;
    const count = fresh.querySelector(".count")?.firstChild?.textContent || "0";
    if (alarms !== null && alarms !== count) say(`${count} alarms waiting`);
    alarms = count;
  }

  function exchange(part, other) {
    // A link that had the focus keeps it.
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceChildren(...other.childNodes);
    if (focused) [...part.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }

  look();
})();
