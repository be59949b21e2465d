#!/usr/bin/env python3
"""check_page.py PAGE.html [PICTURES]: open a report in headless Chromium, 400 and 1400 pixels wide.

Fails on anything that the browser's console says, on a page wider than the window, and unless its first
chart can be read off under the pointer and its first curve switched off. Pictures of both widths go into
the folder PICTURES, for a look."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PROBE = """<script>
const chart = document.querySelector(".chart"), found = {};
found.overflow = document.documentElement.scrollWidth - window.innerWidth;
if (chart) {
  const svg = chart.querySelector("svg"), box = svg.getBoundingClientRect();
  const values = () => [...chart.querySelectorAll("tbody td:nth-child(2)")].map((cell) => cell.textContent);
  found.before = values();
  svg.dispatchEvent(new PointerEvent("pointermove",
    {clientX: box.left + 0.5 * box.width, clientY: box.top + 0.5 * box.height}));
  found.radius = chart.querySelector("output").textContent;
  found.after = values();
  chart.querySelector("input").click();
  found.hidden = getComputedStyle(chart.querySelector(".curve")).display;
}
document.body.insertAdjacentHTML("beforeend", "<pre id=probe>" + JSON.stringify(found) + "</pre>");
</script></body>"""


def browse(page, width, *options):
    """What Chromium prints, and what its console says."""
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           "--enable-logging=stderr", f"--window-size={width},4000", *options, page.as_uri()],
                          capture_output=True, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def check(page, width, folder):
    _, said = browse(page, width, f"--screenshot={folder / f'{width}.png'}")
    yield from said
    probed = folder / "probed.html"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    probed.write_text(text.replace("</body>", PROBE))
    out, said = browse(probed, width, "--dump-dom")
    yield from said
    found = json.loads(re.search(r'<pre id="probe">(.*?)</pre>', out)[1])
    print(width, found)
    if found["overflow"] > 0:
        yield f"{found['overflow']} pixels wider than the window of {width}"
    if "radius" in found and not (float(found["radius"]) > 0 and found["before"] != found["after"]):
        yield "the pointer reads nothing off the chart"
    if found.get("hidden", "none") != "none":
        yield "a curve cannot be switched off"


with tempfile.TemporaryDirectory() as scratch:
    pictures = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else scratch).resolve()
    bad = [line for width in (400, 1400) for line in check(pathlib.Path(sys.argv[1]).resolve(), width, pictures)]
print("\n".join(bad) or "page: ok")
sys.exit(bool(bad))
