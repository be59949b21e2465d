#!/usr/bin/env python3
"""Fail where documents and code have drifted apart: the program in docs/cpp.md must be the one that is compiled,
README must be short, no line of a page for users longer than 120 columns (tables, code and links may be), and every relative
link must lead to a file, a folder and, in a page, a heading."""
import pathlib
import re
import subprocess
import sys

SHORT = {"README.md": 120}  # lines at most
NARROW = ["README.md", "docs/index.md", "docs/commands.md", "docs/cpp.md", "docs/faq.md", "docs/glossary.md", "results/README.md",
          "examples/README.md"]


def anchors_of(page):
    """The names by which the headings of a page can be linked to, as hosting sites make them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def bad_links(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text()):
        if re.match(r"\w+:", target):
            continue
        file = page.parent / target if target else page
        if not file.exists():
            yield f"{page}: link to {target}, which does not exist"
        elif anchor and file.suffix == ".md" and anchor[1:] not in anchors_of(file):
            yield f"{page}: link to {target}{anchor}, but there is no such heading"


def long_lines(page):
    code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        code ^= line.startswith("```")
        if len(line) > 120 and not code and not line.startswith(("|", "    ")) and " " in line[:100]:
            yield f"{page}:{number}: {len(line)} columns, more than 120"


def main():
    program = pathlib.Path("examples/certify_image.cpp").read_text().strip()
    if program not in pathlib.Path("docs/cpp.md").read_text():
        yield "docs/cpp.md: its program differs from examples/certify_image.cpp"
    for name, limit in SHORT.items():
        lines = len(pathlib.Path(name).read_text().splitlines())
        if lines > limit:
            yield f"{name}: {lines} lines, more than {limit}"
    for name in NARROW:
        yield from long_lines(pathlib.Path(name))
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if pathlib.Path(name).exists():
            yield from bad_links(pathlib.Path(name))


bad = list(main())
print("\n".join(bad) or "docs: ok")
sys.exit(bool(bad))
