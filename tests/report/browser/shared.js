// What the charts of a history share: of a picture, what is not displayed has no width.
const visible = (...where) => all(...where).filter((tag) => tag.getBoundingClientRect().width);
const texts = () => visible(".legend button").map((node) => node.textContent.trim()).sort();
const medians = () => new Set(visible(".series[data-line=median]").map((node) => node.closest(".chart"))).size;
seen.charts = visible(".chart").length;
seen.within = visible(".chart .legend").length;
seen.legend = texts();
seen.medians = medians();
set(document.querySelector("[data-filter=framework]"), "torch");
seen.torch = texts();
set(document.querySelector("[data-filter=framework]"), "");
all(".legend button").find((node) => node.textContent.trim() === "median").click();
seen.switched = medians();
