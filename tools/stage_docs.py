#!/usr/bin/env python3
"""stage_docs.py OUT: copy README.md and every file that is linked from it, directly or not, into the folder OUT.

The tree's layout is kept, so that links between pages stay valid. A link to a folder becomes one to its README.md; if
it has none, its words stay without a link. A notebook becomes a page. `make docs` builds the site from OUT."""
import json
import pathlib
import re
import shutil
import sys

LINK = re.compile(r"(!?\[[^]]*\])\(([^)#\s]+)(#[^)\s]*)?\)")


def page_of(notebook):
    """The cells of a notebook as Markdown, with what they printed."""
    for cell in json.loads(notebook.read_text())["cells"]:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
        for output in cell.get("outputs", []):
            printed = output.get("text") or output.get("data", {}).get("text/plain", [])
            if printed:
                yield f"```text\n{''.join(printed).rstrip()}\n```"


class Staging:
    def __init__(self, out):
        self.out, self.done = out, set()

    def stage(self, file):
        if file in self.done:
            return
        self.done.add(file)
        to = self.out / file
        to.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix in (".md", ".ipynb"):
            text = file.read_text() if file.suffix == ".md" else "\n\n".join(page_of(file)) + "\n"
            to.with_suffix(".md").write_text(LINK.sub(lambda link: self.follow(file, *link.groups()), text))
        else:
            shutil.copy(file, to)

    def follow(self, page, words, target, anchor):
        """The link in the staged page, with what it leads to staged too."""
        if re.match(r"\w+:", target):
            return f"{words}({target}{anchor or ''})"
        file = (page.parent / target).resolve().relative_to(pathlib.Path.cwd())
        if not file.exists():  # not a link: `layers[0](x)` in code, as check_docs.py has seen to the links
            return f"{words}({target}{anchor or ''})"
        if file.is_dir():
            if not (file / "README.md").exists():
                return words[1:-1]
            target, file = target.rstrip("/") + "/README.md", file / "README.md"
        self.stage(file)
        if file.suffix == ".ipynb":
            target = str(pathlib.PurePosixPath(target).with_suffix(".md"))
        return f"{words}({target}{anchor or ''})"


Staging(pathlib.Path(sys.argv[1])).stage(pathlib.Path("README.md"))
