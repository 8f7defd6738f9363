// Before anything of the page: notes what would be in the console as an error.
window.complaints = [];
const complain = (e) => complaints.push(e.message || `not loaded: ${e.target.tagName}`);
addEventListener("error", complain, true);
addEventListener("unhandledrejection", (e) => complaints.push(String(e.reason)));
console.error = (...words) => complaints.push(words.join(" "));
for (const name of ["alert", "confirm", "prompt"]) window[name] = () => complaints.push(name);
