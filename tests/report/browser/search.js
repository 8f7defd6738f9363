const search = document.querySelector("input[type=search]");
set(search, "TORCH");
seen.row = look();
set(search, "gemm");
seen.part = look();
set(search, "none of them");
seen.none = look();
set(search, "");
let submitted = false;
document.addEventListener("submit", (event) => {
  submitted = !event.defaultPrevented;
  event.preventDefault();
});
// What a browser does when Enter is pressed in the only text field of a form.
search.form?.requestSubmit();
seen.left = submitted;
