const baseline = document.querySelector("[data-baseline]");
seen.options = all("option", baseline).map((node) => node.textContent);
seen.written = { ratios: ratios(), head: relative() };
set(baseline, BASE);
seen.rebased = { ratios: ratios(), head: relative(), hash: drawn().hash };
seen.sorted = cells(`against ${baseline.selectedOptions[0].textContent}`);
set(baseline, "");
seen.restored = { ratios: ratios(), head: relative() };
