seen.opened = { ...drawn(), baseline: document.querySelector("[data-baseline]").value };
seen.top = Math.abs(gemm.getBoundingClientRect().top) < innerHeight;
gemm.querySelector(".permalink").click();
await new Promise((done) => setTimeout(done, 50));
seen.clicked = drawn();
location.hash = "#part-gemm-cpu-forward-float32?framework=none&text=%3Cimg%20src%3Dx%3E&odd=1";
await new Promise((done) => setTimeout(done, 50));
seen.odd = { ...look(), images: all("img").length, framework: filter("framework").value };
