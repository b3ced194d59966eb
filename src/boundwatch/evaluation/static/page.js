// The trial sheet on a phone. Every outcome is first kept on the phone, then sent until it is acknowledged; the server
// takes each once, by its trial and attempt. What is shown follows from the last answer and from what still waits.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const SETTLE = 800; // milliseconds in which a second tap is not taken for the next trial
  const PAUSE = 4000; // between two looks at the server
  const OTHER = 412; // the server has another evaluation now
  const REFUSED = [409, OTHER, 413, 422]; // after any other answer, what waits is sent again

  // ---- what is kept on the phone: the token, the station, the last answer, and what waits
  const unkept = {}; // what the browser has no room for
  function load(key) {
    if (key in unkept) return unkept[key];
    try { return JSON.parse(localStorage.getItem(`boundwatch ${key}`)); } catch { return null; }
  }
  function save(key, value) {
    delete unkept[key];
    try { localStorage.setItem(`boundwatch ${key}`, JSON.stringify(value)); } catch { unkept[key] = value; }
  }
  const waiting = () => load("waiting") || [];
  const ours = () => waiting().filter((each) => each.evaluation === state?.evaluation); // a phone may serve several
  const isSame = (a, b) => a.evaluation === b.evaluation && a.trial === b.trial && a.attempt === b.attempt;
  const drop = (item) => save("waiting", waiting().filter((each) => !isSame(each, item)));
  const refused = () => load("refused") || [];

  let state = load("state");
  let connected = null; // not known yet
  let locked = false;
  let choosing = false;
  let settled = 0;
  let shown = "";
  let listed = "[]";

  // ---- what is to be run: what the server said, less what was recorded here since
  function due() {
    const trials = (state?.station === load("station") && state?.trials || []).map((each) => ({ ...each }));
    for (const item of ours()) {
      const place = trials.findIndex((each) => each.number === item.trial && each.attempt === item.attempt);
      if (place < 0) continue;
      if (state.repeated.some((kind) => item[kind])) trials[place].attempt += 1;
      else trials.splice(place, 1);
    }
    return trials;
  }

  // ---- talking to the server
  async function ask(path, body) {
    const headers = { "Content-Type": "application/json" };
    if (load("token")) headers.Authorization = `Bearer ${load("token")}`;
    const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout?.(10000) });
    locked = answer.status === 401;
    if (!answer.ok && !REFUSED.includes(answer.status)) throw new Error("not now");
    return { ok: answer.ok, status: answer.status, content: await answer.json() };
  }

  function take(content) {
    state = { ...content, station: load("station") };
    save("state", state);
  }

  let busy = false;
  let again = false;
  async function talk() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      do {
        again = false;
        await send();
      } while (again);
      connected = true;
    } catch {
      connected = false;
      const last = ours().at(-1);
      if (last) say(`Trial ${last.trial}: ${word(last)}. Waits on this phone.`);
    }
    busy = false;
    show();
  }

  async function send() {
    let fresh = false;
    for (let item; (item = ours()[0]); ) {
      const { ok, status, content } = await ask("/api/record", item);
      if (status === OTHER) break;
      if (ok) {
        fresh = item.station === load("station");
        if (fresh) take(content);
        say(`Trial ${item.trial}: ${word(item)}. Kept.`);
      } else {
        save("refused", [...refused(), { ...item, why: content.detail }]);
        say("");
      }
      drop(item);
      show();
    }
    if (fresh) return;
    const { ok, content } = await ask("/api/next", { station: load("station") });
    if (ok) take(content);
    else { say(content.detail); choosing = true; }
    again ||= ok && ours().length > 0;
  }

  // ---- what the operator does
  function word(item) {
    if (item.aborted) return `aborted, ${item.aborted}`;
    if (item.discarded) return `discarded, ${item.discarded}`;
    if (item.milestones) return item.milestones.join(", ") || "no milestone";
    return item.score !== undefined ? `score ${item.score}` : item.success ? "success" : "failure";
  }

  function record(outcome) {
    const trial = due()[0];
    if (!trial || Date.now() < settled) return;
    const note = $("note").value.trim();
    const item = { evaluation: state.evaluation, station: trial.station, trial: trial.number, attempt: trial.attempt, ...outcome };
    if (note) item.note = note;
    save("waiting", [...waiting(), item]);
    talk();
    show();
  }

  async function undo(trial, reason) {
    while (busy) await new Promise((done) => setTimeout(done, 50)); // else an older answer may come later
    busy = true;
    try {
      const station = load("station");
      const { ok, content } = await ask("/api/undo", { evaluation: state.evaluation, station, trial, reason });
      if (ok) take(content);
      say(ok ? `Trial ${trial} was taken back. Run or record it again.` : content.detail);
    } catch {
      connected = false;
      say(`No answer. Whether trial ${trial} was taken back is shown when the network is back.`);
    }
    busy = false;
    show();
  }

  const write = (place, text) => { if (place.textContent !== text) place.textContent = text; }; // else it is read out again
  const say = (text) => write($("said"), text);

  // ---- what is shown
  function viewOf(trial) { // and what else must change for it to be drawn again
    if (locked) return ["locked"];
    if (!load("station") || choosing) return ["choose", state?.stations];
    if (trial) return ["trial", state.evaluation, trial.number, trial.attempt];
    if (state && state.status.state !== "go on") return ["ended", state.status.state];
    if (connected && busy && ours().length) return ["trial", "sending"]; // stays as it is for a moment
    return connected === false || ours().length ? ["offline"] : ["wait", connected];
  }

  function show() {
    const trial = due()[0];
    const [view, ...about] = viewOf(trial);
    const what = JSON.stringify([view, about]);
    header(view);
    $("trial").classList.toggle("settling", !trial || Date.now() < settled);
    if (what === shown || (view === "trial" && !trial)) return;
    const first = shown === "";
    shown = what;
    for (const id of ["message", "choose", "trial"]) $(id).hidden = id !== (view in MESSAGES ? "message" : view);
    if ($("why").open) $("why").close();
    if (view === "choose") showStations();
    else if (view === "trial") showTrial(trial);
    else {
      const [title, text] = MESSAGES[view]();
      $("message").querySelector("h1").textContent = title;
      $("message").querySelector("p").textContent = text;
    }
    if (!first) document.querySelector("section:not([hidden]) h1").focus();
  }

  const ENDS = {
    answered: ["Decided", "The question is answered, and no trial is left to run. This page names no side; the report does."],
    "most rounds": ["Ended", "All rounds are run. The report says what can be said."],
    stopped: ["Stopped", "Somebody ended the evaluation. The report says what can be said."],
  };
  const MESSAGES = {
    locked: () => ["This link is not valid any more", "Scan the code in the terminal again. What waits on this phone is sent then."],
    ended: () => ENDS[state.status.state],
    offline: () => ["Wait for the network", "The next trial is drawn on the computer. Outcomes are safe on this phone and are sent by themselves."],
    wait: () => connected ? ["No trial for this station now", "Other stations have the last ones. This page goes on by itself."] : ["Connecting", "One moment."],
  };

  function header(view) {
    const n = ours().length;
    const others = waiting().length - n;
    const parts = [connected === false && !locked ? "No network" : connected ? "Connected" : ""];
    if (n) parts.push(`${n} ${n === 1 ? "outcome waits" : "outcomes wait"}`);
    if (others) parts.push(`${others} of another evaluation`);
    if (Object.keys(unkept).length) parts.push("this browser keeps nothing: do not close this page");
    write($("connection"), parts.filter(Boolean).join(" · ") || "Connecting");
    $("connection").className = connected === false || n ? "away" : "";
    $("station").hidden = view === "choose" || !load("station");
    $("station").textContent = `Station ${load("station")}`;
    const status = state?.status;
    $("progress").hidden = !status || view === "choose" || view === "locked";
    if (status) {
      $("rounds").max = status.most_rounds;
      $("rounds").value = status.rounds;
      $("progress").querySelector("label").textContent = `${status.rounds} of at most ${status.most_rounds} rounds complete`;
    }
    const undoable = state?.station === load("station") ? state?.undo : null;
    $("undo").textContent = undoable ? `Undo trial ${undoable}` : "Undo";
    $("undo").disabled = !undoable || !connected || n > 0;
    const list = JSON.stringify(refused());
    if (list === listed) return;
    listed = list;
    $("refused").replaceChildren(...refused().map((item) => {
      const entry = document.createElement("li");
      entry.textContent = `Trial ${item.trial} (${word(item)}) was not taken: ${item.why}`;
      entry.append(button("Understood", () => { save("refused", refused().filter((each) => !isSame(each, item))); show(); }));
      return entry;
    }));
  }

  function button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  }

  function showStations() {
    const known = (state?.stations || []).map((name) => button(`Station ${name}`, () => choose(name)));
    $("stations").replaceChildren(...known);
    $("name").value = known.length ? "" : "1";
  }

  function choose(name) {
    save("station", name.trim().replace(/\s+/g, " "));
    choosing = false;
    connected = null;
    show();
    talk();
  }

  function span(name, text) {
    const made = document.createElement("span");
    made.className = name;
    made.textContent = text;
    return made;
  }

  function showTrial(trial) {
    const parts = [span("count", `Trial ${trial.number} of at most ${trial.most_trials}: `), span("label", "policy "), span("policy", trial.policy)];
    for (const name of ["task", "scene"]) if (trial[name]) parts.push(span("hidden", ", "), span("where", `${name} ${trial[name]}`));
    const title = $("trial").querySelector("h1");
    title.replaceChildren(...parts);
    title.classList.toggle("named", trial.policy.length > 2);
    settled = Date.now() + SETTLE;
    $("trial").classList.add("settling");
    setTimeout(show, SETTLE + 10);
    for (const id of ["success", "score", "rubric"]) $(id).hidden = id !== state.measure;
    $("note").value = "";
    if (state.measure === "score") showScore(...state.score_range);
    if (state.measure === "rubric") showMilestones();
  }

  function showScore(low, high) {
    const isFew = Number.isInteger(low) && Number.isInteger(high) && high - low <= 10;
    $("score").reset();
    Object.assign($("number"), { min: low, max: high });
    Object.assign($("slider"), { min: low, max: high, step: (high - low) / 100, hidden: isFew });
    document.querySelector("label[for=slider]").hidden = isFew;
    document.querySelector("label[for=number]").textContent = `Score, from ${low} to ${high}`;
    const keys = isFew ? Array.from({ length: high - low + 1 }, (_, i) => button(String(low + i), () => score(low + i))) : [];
    $("keys").replaceChildren(...keys);
    score(null);
  }

  function score(value) {
    $("number").value = value ?? "";
    $("score").classList.toggle("untouched", value === null);
    for (const key of $("keys").children) key.setAttribute("aria-pressed", String(Number(key.textContent) === value));
  }

  function showMilestones() {
    $("milestones").replaceChildren(...state.milestones.map(([name, points]) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", value: name });
      label.className = "toggle";
      label.append(box, span("", name), span("points", points === 1 ? "1 point" : `${points} points`));
      return label;
    }));
    countMilestones();
  }

  const reached = () => [...$("milestones").querySelectorAll(":checked")].map((box) => box.value);
  function countMilestones() {
    $("rubric").querySelector("button").textContent = `Record ${reached().length} of ${state.milestones.length} milestones`;
  }

  let confirmed = () => {};
  function whyNot(title, what, kinds, reasons, confirm, act) {
    $("why-title").textContent = title;
    $("why-what").textContent = what;
    $("kinds").hidden = !kinds;
    $("reason").value = "";
    $("reasons").replaceChildren(...reasons.map((text) => button(text, () => { $("reason").value = text; })));
    $("confirm").textContent = confirm;
    confirmed = act;
    $("why").showModal();
  }

  // ---- what is touched
  const on = (id, event, act) => $(id).addEventListener(event, (happened) => { happened.preventDefault(); act(happened); });
  on("station", "click", () => { choosing = true; show(); });
  on("name-form", "submit", () => choose($("name").value));
  on("success", "submit", (event) => record({ success: event.submitter.value === "true" }));
  on("score", "submit", () => record({ score: Number($("number").value) }));
  on("rubric", "submit", () => record({ milestones: reached() }));
  $("slider").addEventListener("input", () => { score(Number(Number($("slider").value).toPrecision(12))); });
  $("number").addEventListener("input", () => {
    const text = $("number").value;
    score(text === "" ? null : Number(text));
    $("number").value = text; // as it is being typed
    $("slider").value = text;
  });
  $("milestones").addEventListener("change", countMilestones);
  on("abort", "click", () => {
    const counts = (kind) => state.repeated.includes(kind) ? "is run again" : "counts as a failure";
    const [aborted, discarded] = $("kinds").querySelectorAll("span");
    aborted.textContent = `Aborted: it could not be finished. It ${counts("aborted")}.`;
    discarded.textContent = `Discarded: it was finished, but is not valid. It ${counts("discarded")}.`;
    const kind = () => $("kinds").querySelector(":checked").value;
    const reasons = ["robot fault", "scene disturbed", "my mistake"];
    whyNot(`Abort or discard trial ${due()[0].number}`, "It stays in the log and in the report.", true, reasons, "Record", (reason) => record({ [kind()]: reason }));
  });
  on("undo", "click", () => {
    const trial = state.undo;
    whyNot(`Undo trial ${trial}`, "Its outcome is taken back, and the report says so.", false, ["wrong button", "wrong trial"], "Undo", (reason) => undo(trial, reason));
  });
  on("back", "click", () => $("why").close());
  $("why").querySelector("form").addEventListener("submit", () => { if ($("reason").value.trim()) confirmed($("reason").value.trim()); });
  window.addEventListener("online", talk);
  window.addEventListener("offline", () => { connected = false; show(); });
  window.addEventListener("hashchange", begin);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) talk(); });
  setInterval(() => { if (!document.hidden || ours().length) talk(); }, PAUSE);

  function begin() {
    if (location.hash.length > 1) {
      try { save("token", decodeURIComponent(location.hash.slice(1))); } catch { say("This link is not complete."); }
      history.replaceState(null, "", location.pathname); // not in screenshots, not in the history
    }
    locked = false;
    show();
    talk();
  }
  if (window.isSecureContext && "serviceWorker" in navigator) navigator.serviceWorker.register("/worker.js").catch(() => {});
  begin();
})();
