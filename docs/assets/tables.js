// Commands and output without columns may wrap; programs keep their lines.
for (const block of document.querySelectorAll(".highlight pre")) {
  const text = block.textContent;
  block.classList.toggle("prose", text.startsWith("$ ") && !/\S {3,}\S/.test(text));
}

// Long names in tables break after a dot, a slash, a colon or an underscore, and nowhere else.
for (const name of document.querySelectorAll("td code")) {
  if (name.textContent.length < 24 || name.children.length) continue;
  const parts = name.textContent.match(/.+?(?:[./_]|::|$)/g);
  name.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  name.classList.add("long");
}

// Verdicts on claims (columns "holds?") get a color for their word.
const kinds = { yes: "yes", no: "no", not: "not", "–": "not" };
for (const head of document.querySelectorAll("th")) {
  if (!head.textContent.startsWith("holds?")) continue;
  for (const row of head.closest("table").tBodies[0].rows) {
    const cell = row.cells[head.cellIndex];
    const said = document.createElement("span");
    said.className = `verdict ${kinds[cell.textContent.trim().split(/[ ,]/)[0]] || "partly"}`;
    said.append(...cell.childNodes);
    cell.append(said);
  }
}

// Tables of claims (a column "holds?") are sorted by a click on a column's head, and back by another.
document.addEventListener("click", (event) => {
  const head = event.target.closest("th");
  const table = head && head.closest("table");
  if (!table || ![...table.tHead.rows[0].cells].some((cell) => cell.textContent.startsWith("holds?"))) return;
  const column = head.cellIndex;
  const down = head.getAttribute("aria-sort") === "ascending";
  const text = (row) => row.cells[column].textContent.trim();
  const rows = [...table.tBodies[0].rows].sort((a, b) => text(a).localeCompare(text(b), "en", { numeric: true }));
  for (const cell of head.parentNode.cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  table.tBodies[0].append(...(down ? rows.reverse() : rows));
});
