// The style sheet of the report page: light and dark, screen, phone and paper.
#pragma once

#include <string_view>

namespace fedsmooth {

inline constexpr std::string_view kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --text: #1c1e21; --muted: #5f6670; --line: #dfe2e6; --page: #ffffff; --panel: #f6f7f9;
  --accent: #0072b2; --correct: #0072b2; --wrong: #d55e00; --abstained: #b4bac2;
  --warn-text: #7a3b00; --warn-page: #fff3e4; --warn-line: #e69f00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e4e6ea; --muted: #9aa2ad; --line: #343a43; --page: #15181c; --panel: #1d2127;
    --accent: #56b4e9; --correct: #56b4e9; --wrong: #e5793a; --abstained: #596270;
    --warn-text: #ffd39b; --warn-page: #33261a; --warn-line: #b97a10;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 58rem;
  color: var(--text); background: var(--page);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
  -webkit-text-size-adjust: 100%;
}
h1 { margin: 0 0 0.75rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.015em; }
h2 { margin: 0 0 0.75rem; font-size: 1.3rem; line-height: 1.3; overflow-wrap: anywhere; }
h3 { margin: 1.75rem 0 0.5rem; font-size: 1rem; }
section { margin-top: 2.5rem; padding-top: 1.75rem; border-top: 1px solid var(--line); }
p { margin: 0.5rem 0; max-width: 44rem; }
.lead { font-size: 1.05rem; }
.formula { white-space: nowrap; }
sub { line-height: 0; }
.note { color: var(--muted); font-size: 0.875rem; }
.warning {
  margin: 0.75rem 0; padding: 0.6rem 0.9rem; max-width: none; border-radius: 4px;
  border-left: 4px solid var(--warn-line); background: var(--warn-page); color: var(--warn-text);
}
.curves { margin: 0.75rem 0; }
.scroll { overflow-x: auto; margin: 0.75rem 0; }
.scroll th:first-child { position: sticky; left: 0; background: var(--page); }
.curves svg { display: block; width: 100%; height: auto; }
.curves svg g { font-family: inherit; }
/* gnuplot draws for white paper; these are what would be lost on a dark page. */
.curves svg text { fill: var(--text); }
.curves svg .gridline { stroke: var(--line); }
.curves svg path[stroke="rgb(  0,   0,   0)"] { stroke: var(--text); }
.chart { margin: 0.75rem 0 1.25rem; }
.chart > svg { display: block; width: 100%; max-width: 46rem; height: auto; touch-action: pan-y; }
.chart > svg:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.chart text { fill: var(--text); font-size: 15px; font-variant-numeric: tabular-nums; }
.chart path { fill: none; }
.chart .grid { stroke: var(--line); }
.chart .axis { stroke: var(--muted); }
.chart .cursor { stroke: var(--muted); stroke-dasharray: 3 3; }
.chart .certified { stroke-width: 2.2; }
.chart .attacked { stroke-width: 1.4; stroke-dasharray: 5 5; }
.chart circle { stroke: var(--page); stroke-width: 1.5; }
.legend-table label { display: flex; align-items: center; gap: 0.5rem; cursor: pointer; }
.legend-table label span { white-space: normal; overflow-wrap: anywhere; }
.legend-table th, .legend-table td { white-space: normal; }
.legend-table output { display: inline-block; min-width: 3.2em; }
.legend-table tbody tr + tr td, .legend-table tbody tr + tr th { border-top: 0; }
.chart:not(.with-attacks) tr > :nth-child(3) { display: none; }
.swatch { flex: none; width: 36px; height: 6px; }
.swatch path { fill: none; stroke-width: 2.5; }
h4 { margin: 1.25rem 0 0.5rem; font-size: 0.9375rem; }
h4 small { margin-left: 0.4rem; color: var(--muted); font-weight: 400; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); gap: 1rem; }
.card { margin: 0; font-size: 0.8125rem; line-height: 1.35; }
.card img { display: block; width: 6rem; height: 6rem; object-fit: contain; image-rendering: pixelated; }
.card figcaption { margin-top: 0.35rem; font-size: inherit; overflow-wrap: anywhere; }
.card span { display: block; color: var(--muted); }
.votes { display: block; width: 6rem; height: 0.4rem; margin: 0.3rem 0; }
.votes .others { fill: var(--line); }
.votes .runner-up { fill: var(--muted); }
figure { margin: 0 0 2rem; }
figcaption { max-width: 44rem; font-size: 0.9375rem; }
details { padding: 0.6rem 0; border-bottom: 1px solid var(--line); }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { overflow-x: auto; font-size: 0.8125rem; line-height: 1.4; }
details[open] > summary { font-weight: 600; }
.histogram { display: block; width: 100%; max-width: 34rem; height: auto; }
.histogram text { fill: var(--muted); font-size: 11px; font-variant-numeric: tabular-nums; }
.histogram .axis { stroke: var(--muted); fill: none; }
.correct, .clients { fill: var(--correct); }
.wrong { fill: var(--wrong); }
.abstained { fill: var(--abstained); }
.legend span { margin-right: 1.25rem; white-space: nowrap; }
.legend svg { width: 0.75rem; height: 0.75rem; margin-right: 0.4rem; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.28rem 0.8rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
thead th { border-bottom: 1px solid var(--muted); font-weight: 600; }
tbody tr + tr td, tbody tr + tr th { border-top: 1px solid var(--line); }
tbody th { font-weight: 400; }
.accuracy tbody tr + tr td, .accuracy tbody tr + tr th { border-top: 0; }
.accuracy tbody { border-bottom: 1px solid var(--line); }
.accuracy tbody .run th {
  padding-top: 0.6rem; color: var(--text); font-weight: 600;
  white-space: normal; overflow-wrap: anywhere;
}
.accuracy td, .accuracy tbody th { color: var(--muted); }
.accuracy .value td { color: var(--text); font-weight: 600; }
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
  th, td { padding: 0.25rem 0.5rem; }
  dl { grid-template-columns: 1fr 1fr; gap: 0.7rem 1rem; }
  .chart text { font-size: 26px; }
  .chart .certified { stroke-width: 3.4; }
  .chart .attacked { stroke-width: 2.2; }
  .legend-table th:first-child { width: 100%; }
  .legend-table label { gap: 0.35rem; }
  .gallery { grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)); gap: 0.9rem 0.75rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  .chart, .curves, figure, table, dl, .histogram { break-inside: avoid; }
  .scroll { overflow: visible; }
  .legend-table input { display: none; }
  .gallery { grid-template-columns: repeat(6, 1fr); }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3, h4 { break-after: avoid; }
}
)css";

}  // namespace fedsmooth
