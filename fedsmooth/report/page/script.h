// The page's script, whole: it reads charts off under the pointer and switches their curves on and
// off. It touches no name and loads nothing; a page's policy allows this very text alone.
#pragma once

#include <string_view>

namespace fedsmooth {

inline constexpr std::string_view kReportScript = R"js(
"use strict";
for (const chart of document.querySelectorAll(".chart")) {
  const { left, right, top, bottom, radius, percent, digits } =
    Object.fromEntries(Object.entries(chart.dataset).map(([key, value]) => [key, Number(value)]));
  const svg = chart.querySelector("svg");
  const cursor = svg.querySelector(".cursor");
  const shown = chart.querySelector("output");
  const rows = chart.querySelectorAll("tbody tr");

  // The horizontal pieces of a path M x,y (H x | V y)*, as [x at its right end, y].
  const pieces = (path) => {
    const found = [];
    if (!path) return found;
    const text = path.getAttribute("d");
    let y = Number(text.slice(1, text.search(/[HV]|$/)).split(",")[1]);
    found.push([Number(text.slice(1).split(",")[0]), y]);
    for (const [, kind, value] of text.matchAll(/([HV])([\d.]+)/g)) {
      if (kind === "V") y = Number(value);
      else found.push([Number(value), y]);
    }
    return found;
  };
  const curves = [...svg.querySelectorAll(".curve")].map((group, i) => ({
    group,
    dot: group.querySelector("circle"),
    certified: pieces(group.querySelector(".certified")),
    attacked: pieces(group.querySelector(".attacked")),
    cells: rows[i].querySelectorAll("td"),
    box: rows[i].querySelector("input"),
  }));
  const height = (found, x) => found.find((piece) => piece[0] >= x - 0.005)?.[1];
  const share = (y) => ((bottom - y) / (bottom - top) * percent).toFixed(1);

  let at = left;
  const read = (x) => {
    at = Math.min(Math.max(x, left), right);
    shown.textContent = ((at - left) / (right - left) * radius).toFixed(digits);
    cursor.setAttribute("transform", `translate(${at} 0)`);
    for (const curve of curves) {
      const y = height(curve.certified, at) ?? bottom;
      curve.cells[0].textContent = share(y);
      curve.dot.setAttribute("cx", at);
      curve.dot.setAttribute("cy", y);
      const above = at < curve.attacked[0]?.[0] ? undefined : height(curve.attacked, at);
      curve.cells[1].textContent = above === undefined ? "" : share(above);
    }
  };
  const point = (visible) => {
    for (const mark of [cursor, ...curves.map((curve) => curve.dot)]) {
      mark.setAttribute("visibility", visible ? "visible" : "hidden");
    }
  };
  const follow = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY);
    point(true);
    read(place.matrixTransform(svg.getScreenCTM().inverse()).x);
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", () => { point(false); read(left); });
  svg.addEventListener("blur", () => { point(false); read(left); });
  svg.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (steps === undefined) return;
    event.preventDefault();
    point(true);
    read(at + steps * (right - left) / 200);
  });
  for (const curve of curves) {
    const toggle = () => { curve.group.style.display = curve.box.checked ? "" : "none"; };
    curve.box.addEventListener("change", toggle);
    toggle();  // a browser that goes back restores the boxes
  }
}
)js";

}  // namespace fedsmooth
