const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const controls = all(".filter select, .filter input");
const filters = all("[data-filter]");
const search = document.querySelector("[data-search]");
const baseline = document.querySelector("[data-baseline]");
const details = all(".detail");

// Tables: a click on a head sorts by its column, by value and not by text.

for (const button of all("thead button")) {
  button.addEventListener("click", () => {
    const header = button.closest("th"), body = header.closest("table").tBodies[0];
    const column = header.cellIndex;
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const valueOf = ({ cells }) => cells[column].dataset.value ?? cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [valueOf(a), valueOf(b)], [m, n] = [Number(x), Number(y)];
      return x !== "" && y !== "" && !Number.isNaN(m) && !Number.isNaN(n) ? m - n : x.localeCompare(y);
    };
    body.append(...[...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b))));
  });
}

// Filters: of rows, of the columns of heat maps, and of what charts show of the rows.

const fits = (facts, filter) => filter.value === "" || facts[filter.dataset.filter] === filter.value;
const contestant = ({ framework, execution }) => `${framework} ${execution}`;

/** What is known of a row; what all rows of a section have in common, the section says. */
const factsOf = (row, section) => ({ ...section.dataset, ...row.dataset });

/** Hide the columns of a heat map that do not fit; whether any contestant is left. */
function showColumns(table) {
  const heads = [...table.tHead.rows[0].cells];
  const fitting = heads.map(({ dataset }) => !dataset.framework || ["framework", "execution"].every((name) =>
    filters.every((filter) => filter.name !== name || fits(dataset, filter))));
  heads.forEach((head, column) => {
    if (head.hidden === !fitting[column]) return;
    for (const row of table.rows) row.cells[column].hidden = !fitting[column];
  });
  return heads.some(({ dataset }, column) => dataset.framework && fitting[column]);
}

function showRows(section, text) {
  const map = section.querySelector(".heat");
  const left = map === null || showColumns(map);
  const ofColumns = (filter) => map !== null && ["framework", "execution"].includes(filter.name);
  const rows = all("tbody tr", section), title = section.querySelector("h2").textContent;
  for (const row of rows) {
    const facts = factsOf(row, section);
    const named = text === ""
      || [title, row.textContent, ...Object.values(facts)].join(" ").toLowerCase().includes(text);
    const chosen = filters.every((filter) => ofColumns(filter) || fits(facts, filter));
    row.hidden = !(left && named && chosen);
  }
  return rows;
}

/** Show what charts and legends have of the contestants whose rows are shown. */
function showDrawn(section, rows) {
  const shown = new Set(rows.filter((row) => !row.hidden).map((row) => contestant(factsOf(row, section))));
  const isShown = ({ dataset }) => dataset.framework === undefined || shown.has(contestant(dataset));
  const switchedOff = new Set(all(".legend button[aria-pressed=false]", section).map(({ dataset }) => dataset.line));
  for (const part of all(".chart :is([data-framework], [data-line])", section)) {
    part.classList.toggle("off", !isShown(part) || switchedOff.has(part.dataset.line));
  }
  for (const button of all(".legend button", section)) {
    button.parentNode.hidden = !isShown(button);
  }
}

let untouched = true;

function show() {
  document.body.classList.toggle("every", document.querySelector("[data-columns]")?.value === "all");
  const text = search.value.toLowerCase();
  const chosen = text !== "" || filters.some(({ value }) => value !== "");
  const status = document.querySelector("[data-status]");
  if (untouched && !chosen) {
    const every = all(".detail tbody tr").length;
    status.textContent = `${every} of ${every} rows`;
    return;
  }
  untouched = false;
  let shown = 0, every = 0;
  for (const section of details) {
    const rows = showRows(section, text), here = rows.filter((row) => !row.hidden).length;
    showDrawn(section, rows);
    section.hidden = rows.length ? here === 0 : chosen;
    document.querySelector(`[data-for="${section.id}"]`).hidden = section.hidden;
    shown += here;
    every += rows.length;
  }
  status.textContent = `${shown} of ${every} rows`;
}

for (const button of all(".legend button")) {
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
    const section = button.closest(".detail");
    showDrawn(section, all("tbody tr", section));
  });
}

// Baseline: what ratios are formed against. Without one, as the page was written.

const written = new Map();

function ratioText(ratio) {
  return ratio >= 100 ? `${Math.round(ratio).toLocaleString("en")}x` : `${Number(ratio.toPrecision(3))}x`;
}

/** As fwbench.report.section shades, and two steps for what is faster than the baseline. */
function shadeOf(ratio, blur) {
  if (ratio < 1 / blur) return ratio <= 1 / 2 ? "fast2" : "fast1";
  return ratio <= blur ? "step0" : `step${1 + [1.5, 2, 4, 10].filter((from) => ratio >= from).length}`;
}

/** The factor that the ratio of two cases may be off by, of those of either and one like it. */
const together = (a, b) => Math.exp(Math.hypot(Math.log(a), Math.log(b)) / Math.SQRT2);

function setRatio(cell, { text, value, shade }) {
  (cell.querySelector("a") ?? cell).textContent = text;
  if (value === undefined) delete cell.dataset.value; else cell.dataset.value = value;
  if (cell.closest(".heat")) cell.className = shade;
}

function rebase() {
  const [kind, ...rest] = (baseline?.value ?? "").split(":"), name = rest.join(":");
  const cells = all("[data-time]"), times = new Map();
  const key = (cell, contestantName, run) =>
    JSON.stringify([cell.closest(".detail").id, cell.dataset.contest, contestantName, run]);
  for (const cell of cells) {
    times.set(key(cell, cell.dataset.case, cell.dataset.run), cell.dataset);
    if (!written.has(cell)) {
      written.set(cell, { text: cell.textContent, value: cell.dataset.value, shade: cell.className });
    }
  }
  for (const cell of cells) {
    const { dataset } = cell;
    const base = times.get(kind === "run" ? key(cell, dataset.case, name) : key(cell, name, dataset.run));
    const ofTimes = Number(dataset.time) / Number(base?.time);
    // Of cases that took turns, ratios are those of their visits.
    const inTurns = kind === "case" && ofTimes > 0 && JSON.parse(dataset.turns ?? "{}")[name];
    const [ratio, blur] = inTurns || [ofTimes, together(dataset.blur, base?.blur)];
    if (kind === "") setRatio(cell, written.get(cell));
    else if (!(ratio > 0)) setRatio(cell, { text: "", shade: "" }); // no base, or an upper bound
    else setRatio(cell, { text: ratioText(ratio), value: ratio, shade: shadeOf(ratio, blur) });
  }
  const chosen = kind === "" ? "fastest" : baseline.selectedOptions[0].textContent;
  for (const button of all("[data-relative] button")) button.textContent = `against ${chosen}`;
  document.body.classList.toggle("rebased", kind !== "");
}

// Permalinks: the fragment names a section, and after a question mark what was chosen.

const fragment = () => location.hash.slice(1).split("?");

function write() {
  const chosen = new URLSearchParams(controls.filter(({ value }) => value !== "").map(({ name, value }) => [name, value]));
  const [id] = fragment(), query = chosen.size ? `?${chosen}` : "";
  history.replaceState(null, "", `#${id}${query}`);
}

function read() {
  const [id, query] = fragment(), chosen = new URLSearchParams(query ?? "");
  for (const control of controls) {
    control.value = chosen.get(control.name) ?? "";
    if (control.selectedIndex === -1) control.value = "";
  }
  show();
  if (written.size || baseline?.value) rebase();
  if (id) document.getElementById(id)?.scrollIntoView();
}

if (search) {
  search.form.hidden = false;
  search.form.addEventListener("submit", (event) => event.preventDefault());
  search.form.addEventListener("input", ({ target }) => {
    if (target === baseline) rebase(); else show();
    write();
  });
  // A link within the page names a section alone: what was chosen stays.
  addEventListener("hashchange", () => (fragment().length > 1 ? read() : write()));
  read();
}
addEventListener("beforeprint", () => all("details").forEach((part) => { part.open = true; }));
