// The style sheet of the report page: light and dark, screen, phone and paper.
#pragma once

#include <string_view>

namespace fedsmooth {

inline constexpr std::string_view kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --text: #1c1e21; --muted: #5f6670; --line: #dfe2e6; --page: #ffffff; --panel: #f6f7f9;
  --accent: #0072b2; --correct: #0072b2; --wrong: #d55e00; --abstained: #b4bac2;
  --shade: #00000030; --warn-text: #7a3b00; --warn-page: #fff3e4; --warn-line: #e69f00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e4e6ea; --muted: #9aa2ad; --line: #343a43; --page: #15181c; --panel: #1d2127;
    --accent: #56b4e9; --correct: #56b4e9; --wrong: #e5793a; --abstained: #596270;
    --shade: #ffffff38; --warn-text: #ffd39b; --warn-page: #33261a; --warn-line: #b97a10;
  }
}
@media (prefers-color-scheme: dark) { .series, .swatch { filter: brightness(1.35); } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 62rem;
  color: var(--text); background: var(--page);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
  -webkit-text-size-adjust: 100%;
}
h1 {
  margin: 0 0 0.5rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.015em;
  overflow-wrap: anywhere;
}
h2 { margin: 0 0 0.75rem; font-size: 1.3rem; line-height: 1.3; overflow-wrap: anywhere; }
h3 { margin: 1.75rem 0 0.5rem; font-size: 1.05rem; overflow-wrap: anywhere; }
h4 { margin: 1.5rem 0 0.5rem; font-size: 0.9375rem; }
h5 { margin: 1rem 0 0.5rem; font-size: 0.875rem; }
h5 small { margin-left: 0.4rem; color: var(--muted); font-weight: 400; }
a { color: var(--accent); }
section { margin-top: 2.25rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
p { margin: 0.5rem 0; max-width: 44rem; }
.verdict {
  margin: 0.75rem 0 0.25rem; max-width: none; font-size: 1.2rem; line-height: 1.45; text-wrap:
  pretty;
}
.terms { margin: 0; color: var(--muted); }
.formula { white-space: nowrap; }
sub { line-height: 0; }
.note { color: var(--muted); font-size: 0.875rem; }
.warning {
  margin: 0.75rem 0; padding: 0.6rem 0.9rem; max-width: none; border-radius: 4px;
  border-left: 4px solid var(--warn-line); background: var(--warn-page); color: var(--warn-text);
}
nav ul { margin: 0; padding: 0; list-style: none; font-size: 0.875rem; line-height: 1.35; }
nav a { color: var(--muted); text-decoration: none; overflow-wrap: anywhere; }
nav a:hover, nav a:focus-visible { color: var(--text); text-decoration: underline; }
@media (max-width: 74.99rem) {
  nav { margin-top: 1.25rem; max-height: 9.5rem; overflow-y: auto; }
  nav ul { display: flex; flex-wrap: wrap; gap: 0.35rem 0.5rem; }
  nav li { padding: 0.2rem 0.65rem; border: 1px solid var(--line); border-radius: 1rem; }
  nav .level-2 { border-style: dashed; }
}
@media (min-width: 75rem) {
  body {
    display: grid; max-width: 84rem; column-gap: 3rem; padding-top: 0;
    grid-template-columns: 13.5rem minmax(0, 1fr);
  }
  header { padding-top: 2.5rem; }
  nav {
    grid-column: 1; grid-row: 1 / span 3; position: sticky; top: 0; align-self: start;
    max-height: 100vh; overflow-y: auto; padding: 2.9rem 0 2rem;
  }
  nav li { margin: 0.45rem 0; }
  nav .level-2 { margin: 0.3rem 0; padding-left: 0.9rem; font-size: 0.8125rem; }
  header, main, footer { grid-column: 2; min-width: 0; }
}
/* Where a table is cut off, a shadow shows that it continues. */
.scroll {
  position: relative; overflow-x: auto; margin: 0.75rem 0;
  background:
    linear-gradient(to right, var(--page) 30%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--page) 30%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / 0.8rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / 0.8rem 100% no-repeat scroll;
}
.scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.chart { position: relative; margin: 0.75rem 0 1.25rem; }
.chart.one { max-width: 52rem; }
.plots { display: grid; gap: 0.75rem 1.25rem; }
.row > .plots { grid-template-columns: repeat(auto-fit, minmax(min(100%, 16.5rem), 1fr)); }
.row > .plots:has(> :nth-child(4):last-child) {
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
}
.stack > .plots { max-width: 52rem; gap: 0; }
.plot { container-type: inline-size; min-width: 0; }
.plot-title { margin: 0 0 0.25rem; text-align: center; font-weight: 600; font-size: 0.875rem; }
.plot > svg { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y; }
.plot > svg:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
/* Letters of 13 pixels, however wide the plot is shown: --c is about how wide that is. */
.plot text {
  fill: var(--text); font-size: calc(13px * var(--w) / var(--c)); font-variant-numeric:
  tabular-nums;
}
.plot .axis-label { fill: var(--muted); }
.plot > svg { --c: 780; margin-bottom: -0.75rem; }
@container (max-width: 44rem) { .plot > svg { --c: 620; margin-bottom: 0; } }
@container (max-width: 35rem) { .plot > svg { --c: 500; margin-bottom: 0.5rem; } }
@container (max-width: 28rem) { .plot > svg { --c: 400; margin: 0.4rem 0 1rem; } }
@container (max-width: 22.9rem) { .plot > svg { --c: 335; } }
@container (max-width: 19rem) { .plot > svg { --c: 285; } }
.plot path { fill: none; }
.plot .line, .plot .grid, .plot .axis, .plot .cursor { vector-effect: non-scaling-stroke; }
.plot .grid { stroke: var(--line); }
.plot .axis { stroke: var(--muted); }
.plot .cursor { stroke: var(--muted); stroke-dasharray: 3 3; }
.plot .line { stroke-width: 2.2; }
.plot .thin { stroke-width: 1.3; stroke-dasharray: 4 4; }
.plot circle { r: calc(4px * var(--w) / var(--c)); stroke: var(--page); stroke-width: 1.5; }
.series { transition: opacity 0.15s; }
.series.faint { opacity: 0.15; }
.legend {
  display: flex; flex-wrap: wrap; gap: 0.1rem 1.25rem; margin: 0.5rem 0 0; padding: 0;
  list-style: none; font-size: 0.875rem;
}
.legend label {
  display: flex; align-items: center; gap: 0.4rem; padding: 0.15rem 0; cursor: pointer;
}
.legend label span { overflow-wrap: anywhere; }
.legend input { margin: 0; accent-color: var(--muted); }
.hint { color: var(--muted); padding: 0.15rem 0; }
.swatch { flex: none; width: 28px; height: 12px; }
.swatch path { fill: none; stroke-width: 2.5; }
.save { margin-top: 0.4rem; }
.save, thead button {
  border: 0; padding: 0; background: none; color: inherit; font: inherit; cursor: pointer;
  text-align: inherit;
}
.save { color: var(--muted); font-size: 0.8125rem; text-decoration: underline; }
.save:hover, thead button:hover { color: var(--accent); }
.tip {
  position: absolute; z-index: 1; width: max-content; max-width: min(24rem, 85%); padding:
  0.4rem 0.6rem;
  border: 1px solid var(--line); border-radius: 5px; background: var(--page); box-shadow: 0 2px
  10px #0004;
  font-size: 0.8125rem; line-height: 1.3; pointer-events: none;
}
.tip table { margin-top: 0.2rem; font-size: inherit; }
.tip th, .tip td {
  padding: 0.05rem 0 0.05rem 0.5rem; border: 0 !important; text-align: left; white-space:
  normal;
}
.tip th { font-weight: 400; }
.tip td:first-child { padding-left: 0; }
.tip td:last-child { text-align: right; white-space: nowrap; }
.tip .nearest > * { font-weight: 600; }
.pair {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 0
  2.5rem;
}
.pair > div { min-width: 0; }
.run-name { margin-top: 0; }
article.run + article.run {
  margin-top: 2.5rem; padding-top: 1.5rem; border-top: 1px solid var(--line);
}
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); gap: 1rem; }
.card { margin: 0; font-size: 0.8125rem; line-height: 1.35; }
.card img {
  display: block; width: 6rem; height: 6rem; object-fit: contain; image-rendering: pixelated;
}
.card figcaption { margin-top: 0.35rem; font-size: inherit; overflow-wrap: anywhere; }
.card span { display: block; color: var(--muted); }
.votes { display: block; width: 6rem; height: 0.4rem; margin: 0.3rem 0; }
.votes .others { fill: var(--line); }
.votes .runner-up { fill: var(--muted); }
figure { margin: 0 0 2rem; }
figcaption { max-width: 44rem; font-size: 0.9375rem; }
details { padding: 0.5rem 0; }
.run > details { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { overflow-x: auto; font-size: 0.8125rem; line-height: 1.4; }
details[open] > summary { font-weight: 600; }
.correct { fill: var(--correct); }
.wrong { fill: var(--wrong); }
.abstained { fill: var(--abstained); }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.28rem 0.8rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
thead th { border-bottom: 1px solid var(--muted); font-weight: 600; }
tbody tr + tr td, tbody tr + tr th { border-top: 1px solid var(--line); }
tbody th { font-weight: 400; }
.scroll th:first-child {
  position: sticky; left: 0; background: var(--page); min-width: 4.5rem; white-space: normal;
  overflow-wrap: anywhere;
}
thead th { white-space: normal; vertical-align: bottom; }
.scroll .accuracy th:first-child { min-width: 9rem; }
.accuracy td { vertical-align: top; }
td small { display: block; color: var(--muted); font-size: 0.75rem; font-weight: 400; }
.best { font-weight: 700; color: var(--accent); }
thead button { font-weight: 600; }
[aria-sort=ascending] button::after { content: " ↑"; }
[aria-sort=descending] button::after { content: " ↓"; }
dl {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(13.5rem, 1fr));
  gap: 0.9rem 1.5rem; margin: 1rem 0; padding: 1rem 1.1rem; border-radius: 6px;
  background: var(--panel);
}
dt { color: var(--muted); font-size: 0.8rem; }
dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.provenance td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.provenance th { vertical-align: top; color: var(--muted); }
footer { margin-top: 3rem; color: var(--muted); font-size: 0.8rem; }
@media (max-width: 36rem) {
  body { padding: 1.5rem 1rem 3rem; font-size: 15px; }
  .verdict { font-size: 1.1rem; }
  th, td { padding: 0.25rem 0.45rem; }
  .scroll .accuracy th:first-child { min-width: 7.5rem; }
  .accuracy small { display: none; }
  dl { grid-template-columns: 1fr 1fr; gap: 0.7rem 1rem; }
  .gallery { grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)); gap: 0.9rem 0.75rem; }
}
@media print {
  body { display: block; max-width: none; padding: 0; font-size: 10pt; }
  nav, .save, .legend input { display: none; }
  .chart, figure, table, dl { break-inside: avoid; }
  .scroll { overflow: visible; background: none; }
  .gallery { grid-template-columns: repeat(6, 1fr); }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3, h4, h5 { break-after: avoid; }
}
)css";

}  // namespace fedsmooth
