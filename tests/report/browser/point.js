const tooltip = gemm.querySelector(".tooltip");
const dot = all(".dots", gemm).find((node) => node.textContent.includes("1.8 ms to 2.2 ms"))
  .querySelector(".dot");
seen.before = tooltip.textContent;
dot.dispatchEvent(new MouseEvent("mouseenter"));
seen.tooltip = all("text", tooltip).map((node) => node.textContent);
seen.shown = tooltip.style.display !== "none" && Number(tooltip.style.opacity) === 1;
seen.charts = all(".pygal-chart").map((node) => node.getBoundingClientRect())
  .map((box) => box.width > 200 && box.height > 100);
for (const node of all(".dot, .tooltip-trigger")) {
  node.dispatchEvent(new MouseEvent("mouseenter"));
  node.dispatchEvent(new MouseEvent("mouseleave"));
}
const line = document.querySelector(".chart .legend");
line.dispatchEvent(new MouseEvent("mouseenter"));
line.dispatchEvent(new MouseEvent("click"));
