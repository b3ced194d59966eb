// Keeps the page current: asks every second whether anything changed, then fetches the page again and exchanges the
// parts that are marked data-live. Without this script the page is the same, as of when it was loaded. And sends what
// people fill in to the API: forms that are marked data-api.
"use strict";

(() => {
  const status = document.getElementById("live");
  if (!status) return;
  const pause = 1000;
  const waiting = (page) => page.querySelector(".count")?.firstChild?.textContent || "0";
  let seen = null; // what /changes said before the page was last fetched: nothing yet, so it is fetched once more
  let alarms = waiting(document);

  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  const ask = async (path, kind) => {
    try {
      const answer = await fetch(path, { headers: { Accept: kind } });
      return answer.ok && !answer.redirected ? await answer.text() : null;
    } catch {
      return null; // also if it was cut off
    }
  };

  async function look() {
    try {
      if (document.hidden) return;
      const now = await ask("/changes", "application/json");
      if (now === null || (now !== seen && !(await refresh()))) return say("Reconnecting");
      seen = now;
      if (["", "Reconnecting"].includes(status.textContent)) say("Live");
    } finally {
      setTimeout(look, pause);
    }
  }

  async function refresh() {
    const text = await ask(location.href, "text/html");
    if (text === null) return false;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (other && !busy(part) && part.innerHTML !== other.innerHTML) exchange(part, other);
    }
    document.title = fresh.title;
    const count = waiting(fresh);
    if (alarms !== count) say(`${count} alarms waiting`);
    alarms = count;
    return true;
  }

  function exchange(part, other) {
    // A link that had the focus keeps it.
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceChildren(...other.childNodes);
    if (focused) [...part.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }

  async function json(name, value) {
    if (value instanceof File) return value.text(); // as it is: a number keeps all its digits
    if (name === "streams") return JSON.stringify(value.split("\n").map((line) => line.trim()).filter(Boolean));
    if (name.startsWith("alpha_")) return Number.isNaN(Number(value)) ? JSON.stringify(value) : value;
    return name === "new_generation" ? "true" : ["success", "cost"].includes(name) ? value : JSON.stringify(value.trim());
  }

  async function send(form, submitter) {
    const fields = [...new FormData(form, submitter)].filter(([, value]) => (value instanceof File ? value.size : value.trim()));
    const file = fields.find(([, value]) => value instanceof File)?.[1];
    if (file && !fields.some(([name]) => name === "name")) fields.push(["name", file.name.replace(/\.[^.]*$/, "")]);
    const parts = await Promise.all(fields.map(async ([name, value]) => `"${name}":${await json(name, value)}`));
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(form.dataset.api, { method: "POST", headers, body: `{${parts.join()}}` });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.detail);
    const bound = said.generations && `/streams/${encodeURIComponent(Object.keys(said.generations)[0])}`;
    location.assign(bound ?? (said.fingerprint ? `/certificates/${said.fingerprint}` : location.href));
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.api) return;
    event.preventDefault();
    send(form, event.submitter).catch((error) => {
      const place = form.querySelector("[role=alert]") ?? form.appendChild(document.createElement("p"));
      place.className = "note";
      place.setAttribute("role", "alert");
      place.textContent = error.message;
    });
  });

  look();
})();
