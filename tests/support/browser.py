"""A page in headless Chromium: what it shows while it is used."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from fwbench.report.model import Run, read
from support.launched_runs import plain, write
from support.reports import case, parsed, training

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

#: Before anything of the page: what would be in the console as an error.
_LISTENER = """<script>
window.complaints = [];
const complain = (e) => complaints.push(e.message || `not loaded: ${e.target.tagName}`);
addEventListener("error", complain, true);
addEventListener("unhandledrejection", (e) => complaints.push(String(e.reason)));
console.error = (...told) => complaints.push(told.join(" "));
for (const name of ["alert", "confirm", "prompt"]) window[name] = () => complaints.push(name);
</script>"""

#: Behind everything of the page: ``{exercise}`` fills ``found``, which the page shows then.
_EXERCISE = """<script>
const found = {{}};
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const gemm = document.getElementById("part-gemm-cpu-forward-float32");
const header = (name) => all("thead th", gemm).find((one) => one.textContent === name);
const at = (name) => all("thead th", gemm).indexOf(header(name));
const cells = (name) => all("tbody tr", gemm).map((row) => row.children[at(name)].textContent);
const filter = (name) => document.querySelector(`[data-filter=${{name}}]`);
const set = (field, value) => {{
  field.value = value;
  field.dispatchEvent(new Event("input", {{ bubbles: true }}));
}};
const look = () => ({{
  rows: all(".detail tbody tr").filter((row) => row.checkVisibility()).map((row) =>
    `${{row.closest("section").id}}: ${{row.children[0].textContent}}`),
  sections: all(".detail").filter((one) => one.checkVisibility()).map((one) => one.id),
  index: all("nav li").filter((one) => one.checkVisibility()).map((one) => one.textContent.trim()),
  status: document.querySelector("[role=status]").textContent,
}});
addEventListener("load", async () => {{
  try {{
    {exercise}
  }} catch (error) {{
    complaints.push(`exercise: ${{error}}`);
  }}
  found.complaints = complaints;
  found.requests = performance.getEntriesByType("resource").map((one) => one.name);
  const shown = document.createElement("pre");
  shown.id = "found";
  shown.textContent = JSON.stringify(found);
  document.body.append(shown);
}});
</script>"""


def found() -> str | None:
    """The path of a browser; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def exercised(
    chromium: str,
    folder: Path,
    made: str,
    exercise: str,
    *options: str,
    library: str = "",
    fragment: str = "",
) -> dict[str, Any]:
    """What a page showed while it was used.

    Args:
        folder: of the page, and of the browser's own files.
        exercise: what is done, in JavaScript, which may ``await``; it notes in ``found`` what it
            saw.
        options: of the browser, beside the usual ones.
    """
    file = folder / "report.html"
    written = made.replace("<head>", f"<head>{_LISTENER}", 1)
    behind = f"<script>{library}</script>{_EXERCISE.format(exercise=exercise)}</body>"
    written = written.replace("</body>", behind, 1)
    file.write_text(written, encoding="utf-8")
    ended = subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--disable-background-networking", "--no-first-run", "--window-size=1200,900"),
            *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"),
            *(*options, "--dump-dom", f"{file.as_uri()}{fragment}"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    document = ended.stdout.partition('<pre id="found">')[2].partition("</pre>")[0]
    assert document, f"the page did not come to its end: {ended.stderr}"
    found: dict[str, Any] = json.loads(parsed(f"<pre>{document}</pre>").all("pre")[0].text)
    return found


def everything(folder: Path) -> list[Run]:
    """Runs with something of everything."""
    first = [
        *(case("gemm", "numpy", size=size) for size in (10, 100)),
        case("gemm", "torch", (1.0, 2.0), dispatch_s=0.1, completion_s=1.5),
        case("gemm", "torch", (1.0, 2.0), "compile"),
        case("dot", device="gpu:0"),
        training(),
        training("mxnet", data={"name": "mnist", "source": "synthetic", "origin": "made"}),
        plain(),
    ]
    missing = [{"nodeid": "x", "framework": "jax", "why": "deselected"}]
    return [
        read(write(folder / "first.json", *first, missing=missing, absent={"jax": "absent"}), 0),
        read(write(folder / "second.json", case()), 1),
    ]
