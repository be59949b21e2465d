#!/usr/bin/env python3
"""Fail where the documents and the code have drifted apart: the program in README.md must be the one
that is compiled, and relative links must lead somewhere."""
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

print("\n".join(bad) or "docs: ok")
sys.exit(bool(bad))
