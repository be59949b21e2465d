#!/usr/bin/env python3
"""Fail where the documents and the code have drifted apart: the program in README.md must be the one
that is compiled, relative links must lead somewhere, and the layer table in docs/design.md must be
the one that is enforced."""
import pathlib
import re
import sys

bad = []

readme = pathlib.Path("README.md").read_text()
program = pathlib.Path("examples/certify_image.cpp").read_text().strip()
if program not in readme:
    bad.append("README.md: its program differs from examples/certify_image.cpp")

for page in [pathlib.Path("README.md"), pathlib.Path("CONTRIBUTING.md"), *pathlib.Path("docs").glob("*.md"),
             *pathlib.Path("experiments").glob("*/*.md")]:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"\w+:", target) and not (page.parent / target).exists():
            bad.append(f"{page}: link to {target}, which does not exist")

layers = pathlib.Path("tools/check_layers.py").read_text()
design = pathlib.Path("docs/design.md").read_text()
for module, seen in re.findall(r'^    "([\w/]+)": "([\w/ ]*)",$', layers, re.M):
    row = f"| {module} | {', '.join(seen.split()) or 'nothing of ours'} |"
    if row not in design:
        bad.append(f"docs/design.md: has no row '{row}'")

print("\n".join(bad) or "docs: ok")
sys.exit(bool(bad))
