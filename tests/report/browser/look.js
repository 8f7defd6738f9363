seen.tags = all("img, i, b").length;
seen.scripts = all("script").map((node) => node.textContent.trimStart().slice(0, 8));
const names = all("*").flatMap((node) => node.getAttributeNames());
seen.handlers = names.filter((name) => name.startsWith("on")).length;
seen.shown = document.body.textContent.includes(NAME);
