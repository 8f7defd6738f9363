// What charts, legend and heat map show, by framework or contestant.
const overview = document.getElementById("part-overview-cpu-forward-float32");
// Of what is not displayed in a picture, Chromium's checkVisibility says that it is visible.
const visible = (...where) => all(...where).filter((tag) => tag.getBoundingClientRect().width);
const names = (nodes, key) => [...new Set(nodes.map((node) => node.dataset[key]))].sort();
const drawn = () => ({
  series: names(visible(".chart .series[data-framework]", gemm), "line"),
  legend: names(visible(".legend button", gemm), "line"),
  columns: visible("thead th", overview).map((node) => node.textContent),
  hash: decodeURIComponent(location.hash),
});
const shown = (cell) => [cell.textContent, cell.className];
const ratios = () => Object.fromEntries(all("tbody tr", overview).map(({ cells }) =>
  [cells[0].textContent, [...cells].slice(2).map(shown)]));
const relative = () => all("[data-relative]", gemm).map((node) => node.textContent);
