// Keeps the page current: when the server says that something changed, fetch the page again and exchange the parts
// that are marked data-live. Without this script the page is the same, as of when it was loaded.
"use strict";

(() => {
  const status = document.getElementById("live");
  if (!status || !window.EventSource) return;
  const pause = 1500;
  let due = false;
  let waiting = null;
  let alarms = null;

  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");

  async function refresh() {
    waiting = null;
    if (!due || document.hidden) return;
    due = false;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
    if (answer && answer.ok && !answer.redirected) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
        if (other && !busy(part) && part.innerHTML !== other.innerHTML) exchange(part, other);
      }
      document.title = fresh.title;
      announce(fresh);
    }
    schedule();
  }

  function exchange(part, other) {
    // A link that had the focus keeps it.
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceChildren(...other.childNodes);
    if (focused) [...part.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }

  function announce(fresh) {
    const count = fresh.querySelector(".count")?.firstChild?.textContent || "0";
    if (alarms !== null && alarms !== count) status.textContent = `${count} alarms waiting`;
    alarms = count;
  }

  function schedule() {
    if (waiting === null && due) waiting = setTimeout(refresh, pause);
  }

  const events = new EventSource("/events");
  events.addEventListener("open", () => { status.textContent = "Live"; });
  events.addEventListener("error", () => { status.textContent = "Reconnecting"; });
  events.addEventListener("changed", () => { due = true; schedule(); });
  document.addEventListener("visibilitychange", schedule);
})();
