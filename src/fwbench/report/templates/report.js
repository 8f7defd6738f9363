"use strict";
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const header = button.closest("th"), table = header.closest("table"), body = table.tBodies[0];
    const column = [...header.parentNode.children].indexOf(header);
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const of = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [of(a), of(b)], [m, n] = [Number(x), Number(y)];
      return x !== "" && y !== "" && !Number.isNaN(m) && !Number.isNaN(n) ? m - n : x.localeCompare(y);
    };
    body.append(...[...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b))));
  });
}
const filters = [...document.querySelectorAll("[data-filter]")];
const search = document.querySelector("[data-search]");
function show() {
  let shown = 0, all = 0;
  const chosen = search.value !== "" || filters.some((filter) => filter.value !== "");
  for (const section of document.querySelectorAll(".detail")) {
    let here = 0;
    const rows = [...section.querySelectorAll("tbody tr")];
    for (const row of rows) {
      const fits = filters.every((f) => !f.value || row.dataset[f.dataset.filter] === f.value);
      const text = [row.textContent, ...Object.values(row.dataset), section.querySelector("h2").textContent];
      const named = !search.value || text.join(" ").toLowerCase().includes(search.value.toLowerCase());
      row.hidden = !(fits && named);
      here += !row.hidden;
      all += 1;
    }
    section.hidden = rows.length ? here === 0 : chosen;
    document.querySelector(`[data-for="${section.id}"]`).hidden = section.hidden;
    shown += here;
  }
  document.querySelector("[data-status]").textContent = `${shown} of ${all} rows`;
}
if (search) {
  search.form.addEventListener("submit", (event) => event.preventDefault());
  for (const field of [...filters, search]) field.addEventListener("input", show);
  show();
}
