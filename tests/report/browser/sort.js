const sorted = (name) => {
  header(name).querySelector("button").click();
  return { cells: cells(name), aria: header(name).getAttribute("aria-sort") };
};
seen.median = [sorted("median"), sorted("median")];
seen.size = sorted("size");
seen.case = [sorted("case"), sorted("case")];
seen.against = [sorted("against eager"), sorted("against eager")];
seen.marked = all("thead th[aria-sort]", gemm).map((node) => node.textContent);
