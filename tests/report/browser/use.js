// Everything that can be sorted, chosen, pointed at or clicked.
seen.sections = look().sections;
seen.charts = all(".pygal-chart").map((node) => node.getBoundingClientRect())
  .map((box) => box.width > 200 && box.height > 100);
const legend = document.querySelector(".chart .legend");
const drawn = all(".serie-0 .reactive", legend.closest("svg"));
legend.dispatchEvent(new MouseEvent("click"));
seen.hidden = drawn.length > 0 && drawn.every((node) => node.style.display === "none");
for (const node of all("thead button")) node.click();
for (const field of all("[data-filter]")) {
  for (const option of all("option", field)) set(field, option.value);
  set(field, "");
}
for (const node of all(".dot, .tooltip-trigger, .legend")) {
  node.dispatchEvent(new MouseEvent("mouseenter"));
  node.dispatchEvent(new MouseEvent("mouseleave"));
  node.dispatchEvent(new MouseEvent("click"));
}
seen.status = look().status;
