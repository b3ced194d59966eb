// Labels of what an audit drew. The server has every label on its disk before it shows the next episode.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const SETTLE = 400; // milliseconds in which a second key is not taken for the next episode
  const load = (key) => { try { return localStorage.getItem(`boundwatch ${key}`); } catch { return kept[key] || null; } };
  const save = (key, value) => { kept[key] = value; try { localStorage.setItem(`boundwatch ${key}`, value); } catch { /* kept here */ } };
  const kept = {};
  let state = null;
  let busy = false;
  let settled = 0;
  let urls = [];

  // ---- talking to the server
  function headers() {
    const found = { "Content-Type": "application/json" };
    if (load("label token")) found.Authorization = `Bearer ${load("label token")}`;
    return found;
  }

  async function talk(path, body) {
    if (busy) return;
    busy = true;
    try {
      const answer = await fetch(path, { method: "POST", headers: headers(), body: JSON.stringify({ labeler: load("labeler"), ...body }) });
      const content = await answer.json();
      if (answer.status === 401) message("This link is not valid any more", "Open the link in the terminal.");
      else if (!answer.ok) {
        write($("said"), content.detail);
        if (answer.status === 422) choose();
        else setTimeout(() => talk("/api/next", {}), 1000);
      } else show(content);
      connected(true);
    } catch {
      connected(false);
    }
    busy = false;
  }

  function connected(yes) {
    $("connection").classList.toggle("away", !yes);
    write($("connection"), yes ? "Connected" : "No answer; try again");
  }

  // ---- what is shown
  const write = (place, text) => { if (place.textContent !== text) place.textContent = text; };
  function view(name) {
    for (const id of ["message", "choose", "trial"]) $(id).hidden = id !== name;
    $("progress").hidden = name === "choose" || !state;
    $("station").hidden = !load("labeler");
    write($("station"), load("labeler") || "");
    $(name).querySelector("h1").focus();
  }

  function message(title, text) {
    const [head, body] = $("message").children;
    write(head, title);
    write(body, text);
    view("message");
  }

  function choose() {
    $("stations").replaceChildren(...(state?.labelers || []).map((name) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
      button.addEventListener("click", () => begin(name));
      return button;
    }));
    view("choose");
  }

  function begin(name) {
    save("labeler", name.trim().replace(/\s+/g, " "));
    talk("/api/next", {});
  }

  function show(now) {
    state = now;
    for (const url of urls) URL.revokeObjectURL(url);
    urls = [];
    write($("progress").querySelector("label"), `${state.done} of ${state.episodes} labeled`);
    Object.assign($("rounds"), { max: state.episodes, value: state.done });
    if (!load("labeler")) return choose();
    write($("said"), "");
    if (!state.shown) {
      const others = state.complete > 1 ? ` ${state.complete} labelers are done; they disagree on ${state.disagreed} of ${state.episodes} episodes.` : "";
      return message("All labeled", `Thank you. The labels are in the file.${others}`);
    }
    write($("trial").querySelector("h1"), `Episode ${state.done + 1} of ${state.episodes}: did it succeed?`);
    $("shown").replaceChildren(...state.shown.map(shownAs));
    $("undo").disabled = state.done === 0;
    settled = Date.now() + SETTLE;
    view("trial");
  }

  function shownAs(cell) {
    const frame = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = cell.kind === "text" ? `${cell.name}: ${cell.text}` : cell.name;
    if (cell.kind === "link") {
      const link = Object.assign(document.createElement("a"), { href: cell.text, textContent: cell.text, target: "_blank", rel: "noopener noreferrer" });
      caption.append(": ", link);
    }
    if (cell.file) fetchFile(cell, frame);
    frame.append(caption);
    return frame;
  }

  const unseen = (cell) => Object.assign(document.createElement("p"), { textContent: `${cell.text} cannot be shown here; open it elsewhere.` });

  async function fetchFile(cell, frame) { // by its header's token, which an address could not carry
    try {
      const answer = await fetch(cell.file, { headers: headers() });
      if (!answer.ok) throw new Error("no file");
      const url = URL.createObjectURL(await answer.blob());
      urls.push(url);
      const made = document.createElement(cell.kind === "video" ? "video" : "img");
      if (cell.kind === "video") Object.assign(made, { controls: true, autoplay: true, loop: true, muted: true, playsInline: true });
      else made.alt = `episode ${state.done + 1}`;
      made.addEventListener("error", () => made.replaceWith(unseen(cell)));
      made.src = url;
      frame.prepend(made);
    } catch {
      frame.prepend(unseen(cell));
    }
  }

  // ---- what is touched
  const label = (success) => { if (!$("trial").hidden && Date.now() >= settled) talk("/api/label", { episode: state.done, success }); };
  const undo = () => { if (state?.done && load("labeler")) talk("/api/undo", { episode: state.done - 1 }); };
  $("success").addEventListener("submit", (event) => { event.preventDefault(); label(event.submitter.value === "true"); });
  $("undo").addEventListener("click", undo);
  $("station").addEventListener("click", choose);
  $("name-form").addEventListener("submit", (event) => { event.preventDefault(); begin($("name").value); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.matches("input, video")) return;
    const video = $("shown").querySelector("video");
    if (event.key === "ArrowLeft" && $("choose").hidden) undo();
    else if (event.key.toLowerCase() === "y") label(true);
    else if (event.key.toLowerCase() === "n") label(false);
    else if (event.key === " " && video && !event.target.matches("button")) { video[video.paused ? "play" : "pause"](); event.preventDefault(); }
  });

  if (location.hash.length > 1) {
    try { save("label token", decodeURIComponent(location.hash.slice(1))); } catch { write($("said"), "This link is not complete."); }
    history.replaceState(null, "", location.pathname); // not in screenshots, not in the history
  }
  talk("/api/next", {});
})();
