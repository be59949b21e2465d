#!/usr/bin/env python3
"""check_page.py PAGE.html [PICTURES]: open a page in headless Chromium, 400 and 1400 pixels wide, light and dark.

Fails on anything that the browser's console says; on a page wider than the window, or letters of a chart beyond
it; on a link inside the page that leads nowhere; on a chart that cannot be read off by pointer, touch and arrow
keys, switched off curve by curve and saved as an SVG; on a table that does not sort by its columns. Pictures of
all four go into the folder PICTURES, for a look."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PROBE = r"""<script>
addEventListener("load", () => {
const bad = [], seen = {width: innerWidth, charts: 0, columns: 0, links: 0};
const check = (good, what) => { if (!good) bad.push(what); };
const saved = [];
window.Blob = function (parts) { saved.push(parts[0]); };
URL.createObjectURL = () => "#saved";
HTMLAnchorElement.prototype.click = function () {};
for (const details of document.querySelectorAll("details")) details.open = true;
document.documentElement.style.scrollBehavior = "auto";

const wide = document.documentElement.scrollWidth - innerWidth;
check(wide <= 0, `${wide} pixels wider than the window`);
for (const link of document.querySelectorAll("a[href^='#']")) {
  seen.links += 1;
  check(document.getElementById(link.getAttribute("href").slice(1)), `nothing at ${link.getAttribute("href")}`);
}

document.querySelectorAll(".chart").forEach((chart, number) => {
  seen.charts += 1;
  const data = JSON.parse(chart.querySelector("script").textContent), tip = chart.querySelector(".tip");
  const what = `chart ${number + 1} (${data.name})`;
  const at = (svg, type, x, more) => {
    const box = svg.getBoundingClientRect();
    svg.dispatchEvent(new PointerEvent(type,
      {clientX: box.left + x * box.width, clientY: box.top + 0.5 * box.height, ...more}));
  };
  const svgs = [...chart.querySelectorAll(".plot > svg")];
  for (const text of chart.querySelectorAll(".plot text")) {
    const box = text.getBoundingClientRect();
    check(box.left >= -0.5 && box.right <= innerWidth + 0.5, `${what}: "${text.textContent}" is cut off`);
    check(box.height > 9 && box.height < 26, `${what}: letters ${box.height} pixels high`);
  }
  svgs.forEach((svg, i) => {
    if (data.plots[i].series.length === 0) return;
    const place = `${what}, plot ${i + 1}`;
    const texts = new Set();
    for (let x = 0.02; x < 1; x += 0.02) {
      at(svg, "pointermove", x);
      texts.add(tip.textContent);
      const box = tip.getBoundingClientRect();
      check(box.left >= 0 && box.right <= innerWidth, `${place}: the readout is cut off`);
    }
    check(!tip.hidden && texts.size > 2, `${place}: the pointer reads nothing off`);
    at(svg, "pointerleave", 0.5, {pointerType: "mouse"});
    check(tip.hidden, `${place}: the readout stays when the pointer leaves`);
    at(svg, "pointerdown", 0.5, {pointerType: "touch"});
    at(svg, "pointerleave", 0.5, {pointerType: "touch"});
    check(!tip.hidden, `${place}: a tap's readout does not stay`);
    document.body.dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}));
    check(tip.hidden, `${place}: a tap elsewhere does not end the readout`);
    const keys = new Set();
    for (const key of ["Home", "ArrowRight", "ArrowRight", "PageUp", "PageUp", "PageUp", "PageUp"]) {
      svg.dispatchEvent(new KeyboardEvent("keydown", {key}));
      keys.add(tip.textContent);
    }
    check(keys.size > 2, `${place}: the arrow keys read nothing off`);
    svg.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
    check(tip.hidden, `${place}: Escape does not end the readout`);
  });
  const box = chart.querySelector(".legend input"), group = chart.querySelector(".series[data-entry='0']");
  box.click();
  check(!group || getComputedStyle(group).display === "none", `${what}: a curve cannot be switched off`);
  box.click();
  chart.querySelector(".save").click();
});
check(saved.length === seen.charts, `${saved.length} of ${seen.charts} charts were saved`);
for (const picture of saved) {
  const svg = new DOMParser().parseFromString(picture, "image/svg+xml");
  check(!svg.querySelector("parsererror") && svg.querySelector("text") && svg.querySelector("path"),
        "a saved chart is not a picture with letters and lines");
  check(!picture.includes("var("), "a saved chart needs the page's style");
}

document.querySelectorAll(".sortable").forEach((table, number) => {
  const headings = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const rows = body.rows.length;
  headings.forEach((heading, column) => {
    seen.columns += 1;
    const values = () => [...body.rows].map((row) => row.cells[column].firstChild?.textContent ?? "")
      .filter((text) => text !== "");
    const sorted = (sign) => values().every((text, i, all) => i === 0 || Number.isNaN(Number(text)) ||
      Number.isNaN(Number(all[i - 1])) || sign * (Number(text) - Number(all[i - 1])) >= 0);
    for (let clicks = 0; clicks < 2; ++clicks) {
      heading.querySelector("button").click();
      check(body.rows.length === rows && sorted(heading.getAttribute("aria-sort") === "ascending" ? 1 : -1),
            `table ${number + 1} does not sort by column ${column + 1}`);
    }
  });
});
console.info("PROBE" + JSON.stringify({bad: [...new Set(bad)].slice(0, 40), seen}));
});
</script></body>"""


def browse(page, width, picture, scheme):
    """Takes a picture and returns what the console says."""
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           "--enable-logging=stderr", f"--window-size={width},4000", f"--screenshot={picture}",
                           f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}", page.as_uri()],
                          capture_output=True, text=True, timeout=300)
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def check(page, width, folder):
    for scheme in ("light", "dark"):
        yield from browse(page, width, folder / f"{width}-{scheme}.png", scheme)
    probed = folder / "probed.html"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    head, end = text.rsplit("</body>", 1)
    probed.write_text(head + PROBE + end)
    frame = folder / "frame.html"  # a window cannot be narrower than 500 pixels, a frame can
    frame.write_text(f'<iframe src="probed.html" style="border: 0" width="{width}" height="900"></iframe>')
    said = browse(frame, 1500, folder / "probed.png", "light")
    probed.unlink()
    frame.unlink()
    (folder / "probed.png").unlink()
    found = [re.search(r'"PROBE(.*)", source:', line) for line in said]
    yield from (line for line, probe in zip(said, found) if not probe)
    found = [json.loads(probe[1]) for probe in found if probe]
    if not found:
        yield f"at {width}: the probe did not end"
        return
    print(found[0]["seen"])
    if found[0]["seen"]["width"] != width:
        yield f"the probe's window is not {width} pixels wide"
    yield from (f"at {width}: {line}" for line in found[0]["bad"])


with tempfile.TemporaryDirectory() as scratch:
    pictures = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else scratch).resolve()
    pictures.mkdir(parents=True, exist_ok=True)
    bad = [line for width in (400, 1400) for line in check(pathlib.Path(sys.argv[1]).resolve(), width, pictures)]
print("\n".join(bad) or "page: ok")
sys.exit(bool(bad))
