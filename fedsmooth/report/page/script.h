// The page's script, whole: it reads charts off beside the pointer, switches their curves on and
// off, saves them, sorts tables and opens what a link leads to. It touches no name but as text and
// loads nothing; a page's policy allows this very text alone.
#pragma once

#include <string_view>

namespace fedsmooth {

inline constexpr std::string_view kReportScript = R"js(
"use strict";
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// ---- charts ----
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Which of the series' values holds at x; undefined: none.
const indexAt = (series, x) => {
  const { kind, x: xs, width } = series;
  const after = xs.findIndex((value) => value >= x - 1e-12);
  const last = xs.findLastIndex((value) => value <= x + 1e-12);
  if (kind === "until") return after < 0 ? undefined : after;
  if (kind === "from") return last < 0 ? undefined : last;
  if (kind !== "line") return last >= 0 && x < xs[last] + width ? last : undefined;
  if (after < 0 || last < 0) return after < 0 ? last : after;
  return x - xs[last] < xs[after] - x ? last : after;
};

class Plot {
  constructor(box, data, chart) {
    Object.assign(this, data, { chart, svg: box.querySelector("svg") });
    [this.left, this.right, this.top, this.bottom] = data.box;
    this.cursor = this.svg.querySelector(".cursor");
    this.groups = [...this.svg.querySelectorAll(".series")];
    this.at = this.x.from;
  }
  toUnits(axis, value, low, high) {
    return low + (high - low) * (value - axis.from) / (axis.to - axis.from);
  }
  unitX(value) { return this.toUnits(this.x, value, this.left, this.right); }
  unitY(value) { return this.toUnits(this.y, value, this.bottom, this.top); }
  valueX(unit) {
    const { from, to } = this.x;
    return clamp(from + (to - from) * (unit - this.left) / (this.right - this.left), from, to);
  }
  // What stands at x: a line for each series that is shown.
  lines(x) {
    const lines = [];
    this.series.forEach((series, i) => {
      if (this.chart.hidden.has(series.entry)) return;
      let index = indexAt(series, x);
      let value = series.y[index];
      if (index === undefined && series.kind === "until") value = 0;
      if (value === undefined) return;
      lines.push({ series, index, value, group: this.groups[i] });
    });
    return lines;
  }
  text(value) { return this.y.digits < 0 ? String(value) : value.toFixed(this.y.digits); }
  // The name of x: that of the bin, the round of a line, the radius itself.
  name(x, lines) {
    const named = lines.find(({ series }) => series.names);
    if (named) return named.series.names[named.index];
    const line = lines.find(({ series }) => series.kind === "line");
    const at = line && this.x.digits === 0 ? line.series.x[line.index] : x;
    return `${this.x.label} ${at.toFixed(this.x.digits)}`;
  }
  mark(x) {
    this.at = x;
    for (const dot of this.svg.querySelectorAll("circle")) dot.setAttribute("visibility", "hidden");
    const lines = this.lines(x);
    for (const { series, index, value, group } of lines) {
      const dot = group.querySelector("circle");
      if (!dot) continue;
      dot.setAttribute("cx", this.unitX(series.kind === "line" ? series.x[index] : x));
      dot.setAttribute("cy", this.unitY(value));
      dot.setAttribute("visibility", "visible");
    }
    this.cursor.setAttribute("transform", `translate(${this.unitX(x)} 0)`);
    this.cursor.setAttribute("visibility", "visible");
    return lines;
  }
  clear() {
    for (const mark of this.svg.querySelectorAll(".cursor, circle")) {
      mark.setAttribute("visibility", "hidden");
    }
  }
  // Where the arrow keys lead: to the next value of a line or bin, else by a part of the axis.
  next(steps) {
    const stepped = this.series.find(({ kind }) => kind === "line" || kind.startsWith("b"));
    const { from, to } = this.x;
    if (!stepped) return clamp(this.at + steps * (to - from) / 200, from, to);
    const { x, width = 0 } = stepped;
    const now = x.findLastIndex((value) => value <= this.at + 1e-9);
    return x[clamp(now + steps, 0, x.length - 1)] + width / 2;
  }
}

class Chart {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector("script").textContent);
    this.hidden = new Set();
    const boxes = root.querySelectorAll(".plot");
    this.plots = this.data.plots.map((data, i) => new Plot(boxes[i], data, this));
    this.tip = root.appendChild(make("div", { className: "tip", role: "status", hidden: true }));
    this.labels = [...root.querySelectorAll(".legend label")];
    for (const plot of this.plots) this.listen(plot);
    this.labels.forEach((label, entry) => {
      const box = label.querySelector("input");
      const toggle = () => {
        if (box.checked) this.hidden.delete(entry); else this.hidden.add(entry);
        for (const group of this.groupsOf(entry)) group.style.display = box.checked ? "" : "none";
      };
      box.addEventListener("change", toggle);
      toggle();  // a browser that goes back restores the boxes
      label.addEventListener("pointerenter", () => this.highlight(entry));
      label.addEventListener("pointerleave", () => this.highlight());
    });
    const save = make("button", { type: "button", className: "save", textContent: "Save as SVG" });
    save.addEventListener("click", () => saveChart(this));
    root.querySelector(".legend").after(save);
  }
  groupsOf(entry) { return this.root.querySelectorAll(`.series[data-entry="${entry}"]`); }
  highlight(entry) {
    for (const group of this.root.querySelectorAll(".series")) {
      group.classList.toggle("faint", entry !== undefined && group.dataset.entry !== String(entry));
    }
  }
  listen(plot) {
    const { svg } = plot;
    const follow = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY);
      const { x, y } = point.matrixTransform(svg.getScreenCTM().inverse());
      this.show(plot, plot.valueX(x), y, event.clientX, event.clientY);
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    // A finger leaves when it is lifted; what it pointed at stays.
    svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.hide();
    });
    svg.addEventListener("blur", () => this.hide());
    svg.addEventListener("keydown", (event) => {
      const steps = {
        ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -1e6, End: 1e6,
      }[event.key];
      if (event.key === "Escape") this.hide();
      if (steps === undefined) return;
      event.preventDefault();
      const x = plot.next(steps);
      const middle = new DOMPoint(plot.unitX(x), (plot.top + plot.bottom) / 2);
      const place = middle.matrixTransform(svg.getScreenCTM());
      this.show(plot, x, undefined, place.x, place.y);
    });
  }
  show(plot, x, y, clientX, clientY) {
    const sameAxis = (other) => other.x.label === plot.x.label && other.x.to === plot.x.to;
    const lines = plot.mark(x);
    for (const other of this.plots) if (other !== plot && sameAxis(other)) other.mark(x);
    const distance = ({ value }) => Math.abs(plot.unitY(value) - y);
    const nearest = y === undefined || lines.length < 2 ? undefined
      : lines.reduce((best, line) => distance(line) < distance(best) ? line : best);
    if (lines.some(({ series }) => series.kind === "until")) {
      lines.sort((a, b) => b.value - a.value);
    }
    this.tip.replaceChildren(
      make("strong", { textContent: plot.name(x, lines) }),
      make("table", {}, ...lines.map((line) => this.row(line, plot, line === nearest))));
    this.tip.hidden = false;
    this.place(clientX, clientY);
  }
  // The readout beside the pointer, on the side that has room.
  place(clientX, clientY) {
    const box = this.root.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height, style } = this.tip;
    const right = clientX - box.left + 16, above = clientY - box.top - height / 2;
    const left = right + width <= box.width ? right : right - width - 32;
    style.left = `${clamp(left, 0, Math.max(0, box.width - width))}px`;
    style.top = `${clamp(above, -8, Math.max(0, box.height - height))}px`;
  }
  row({ series, value }, plot, nearest) {
    const swatch = this.labels[series.entry].querySelector(".swatch").cloneNode(true);
    const name = this.data.legend[series.entry] + (series.suffix ? `, ${series.suffix}` : "");
    return make("tr", { className: nearest ? "nearest" : "" }, make("td", {}, swatch),
      make("th", { textContent: name }), make("td", { textContent: plot.text(value) }));
  }
  hide() {
    this.tip.hidden = true;
    for (const plot of this.plots) plot.clear();
  }
}

// ---- saving: the plots and the legend as one picture for white paper ----
const light = [...document.styleSheets[0].cssRules].find((rule) => rule.selectorText === ":root");
const resolve = (text) =>
  text.replace(/var\((--[\w-]+)\)/g, (_, name) => light.style.getPropertyValue(name).trim());

const svgNode = (tag, attributes, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

const pictureOf = (chart) => {
  const stack = chart.root.classList.contains("stack");
  const style = svgNode("style", {}, resolve(`
    text { font: 13px sans-serif; fill: var(--text) } path { fill: none }
    .grid { stroke: var(--line) } .axis { stroke: var(--muted) } .line { stroke-width: 2 }
    .thin { stroke-width: 1.3; stroke-dasharray: 4 4 }`));
  const picture = svgNode("svg", { xmlns: "http://www.w3.org/2000/svg" }, style);
  let x = 0, y = 0, width = 0, height = 0;
  for (const plot of chart.plots) {
    const [, , w, h] = plot.svg.getAttribute("viewBox").split(" ").map(Number);
    const title = plot.title ? 24 : 0;
    const group = svgNode("g", { transform: `translate(${x} ${y + title + 10})` });
    if (title) {
      group.append(svgNode("text", { x: w / 2, y: -8, "text-anchor": "middle" }, plot.title));
    }
    for (const child of plot.svg.children) {
      if (child.style.display !== "none") group.append(child.cloneNode(true));
    }
    for (const mark of group.querySelectorAll(".cursor, circle")) mark.remove();
    picture.append(group);
    width = Math.max(width, x + w);
    height = Math.max(height, y + title + h + 24);
    if (stack) y = height; else x = width + 10;
  }
  chart.labels.forEach((label, entry) => {
    if (chart.hidden.has(entry)) return;
    const swatch = label.querySelector("path").cloneNode();
    swatch.setAttribute("transform", `translate(20 ${height})`);
    if (!swatch.style.fill) swatch.classList.add("line");
    picture.append(swatch, svgNode("text", { x: 58, y: height + 10 }, chart.data.legend[entry]));
    height += 20;
  });
  for (const hint of chart.root.querySelectorAll(".legend .hint")) {
    picture.append(svgNode("text", { x: 20, y: height + 10 }, hint.textContent));
    height += 20;
  }
  picture.prepend(svgNode("rect", { width, height: height + 6, fill: "#ffffff" }));
  picture.setAttribute("width", width);
  picture.setAttribute("height", height + 6);
  picture.setAttribute("viewBox", `0 0 ${width} ${height + 6}`);
  return resolve(new XMLSerializer().serializeToString(picture));
};

const saveChart = (chart) => {
  const address = URL.createObjectURL(new Blob([pictureOf(chart)], { type: "image/svg+xml" }));
  const name = chart.data.name.replace(/[^\w.-]+/g, "-");
  make("a", { href: address, download: `${name}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};

const charts = [...document.querySelectorAll(".chart")].map((root) => new Chart(root));
document.addEventListener("pointerdown", ({ target }) => {
  for (const chart of charts) if (!chart.root.contains(target)) chart.hide();
});

// ---- tables that sort by a click on a heading ----
for (const table of document.querySelectorAll(".sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = make("button", { type: "button" }, ...heading.childNodes);
    heading.replaceChildren(button);
    // The number before the small print; text is sorted as text, what is not known comes last.
    const key = ({ cells }) => {
      const text = (cells[column].firstChild?.textContent ?? "").trim();
      return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
    };
    button.addEventListener("click", () => {
      const numbers = [...body.rows].some((row) => typeof key(row) === "number");
      const before = heading.getAttribute("aria-sort");
      const down = before ? before !== "descending" : numbers;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = (a, b) => {
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = typeof a === "number" && typeof b === "number" ? a - b
          : String(a).localeCompare(String(b), undefined, { numeric: true });
        return down ? -order : order;
      };
      body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
    });
  });
}

// ---- what a link leads to is opened ----
const reveal = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  const inside = target.querySelector(":scope > details");
  if (inside) inside.open = true;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
)js";

}  // namespace fedsmooth
