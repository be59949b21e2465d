#!/usr/bin/env python3
"""Do tools/check_docs.py and tools/stage_docs.py see what is wrong with a tree of documents, and follow its links?"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
PAGES = ("docs/index.md", "docs/commands.md", "docs/faq.md", "docs/glossary.md", "results/README.md", "examples/README.md")


class DocumentsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name)
        subprocess.run(["git", "init", "-q", self.tree], check=True)
        self.write("examples/certify_image.cpp", "int main() {}\n")
        self.write("docs/cpp.md", "```cpp\nint main() {}\n```\n")
        self.write("README.md", "# Title\n\n[C++](docs/cpp.md)\n")
        for page in PAGES:
            self.write(page, "# Page\n\n## A heading, `with code`\n")

    def write(self, path, text):
        (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / path).write_text(text)

    def run_tool(self, tool, *arguments):
        return subprocess.run([sys.executable, TOOLS / tool, *arguments], cwd=self.tree, capture_output=True, text=True)

    def refusal(self):
        done = self.run_tool("check_docs.py")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stdout

    def test_accepts_a_tree_without_faults(self):
        self.write("docs/index.md", "[down](faq.md#a-heading-with-code) [up](../README.md) [out](https://example.org/x)\n")
        done = self.run_tool("check_docs.py")
        self.assertEqual((done.returncode, done.stdout), (0, "docs: ok\n"), done.stderr)

    def test_refuses_links_that_lead_nowhere(self):
        self.write("results/README.md", "[a](../docs/none.md)\n")
        self.assertEqual(self.refusal(), "results/README.md: link to ../docs/none.md, which does not exist\n")
        self.write("results/README.md", "[a](../docs/faq.md#none)\n")
        self.assertEqual(self.refusal(), "results/README.md: link to ../docs/faq.md#none, but there is no such heading\n")

    def test_refuses_a_long_readme(self):
        self.write("README.md", "line\n" * 121)
        self.assertEqual(self.refusal(), "README.md: 121 lines, more than 120\n")

    def test_refuses_long_lines_outside_of_tables_and_code(self):
        wide = "word " * 30
        self.write("docs/faq.md", f"| {wide} |\n\n    {wide}\n\n```\n{wide}\n```\n")
        self.assertEqual(self.run_tool("check_docs.py").returncode, 0)
        self.write("docs/faq.md", f"{wide.strip()}\n")
        self.assertEqual(self.refusal(), "docs/faq.md:1: 149 columns, more than 120\n")

    def test_refuses_another_program_than_the_compiled_one(self):
        self.write("docs/cpp.md", "```cpp\nint main() { return 1; }\n```\n")
        self.assertIn("differs from examples/certify_image.cpp", self.refusal())

    def test_stages_what_is_linked(self):
        self.write("README.md", "[one](docs/index.md) [two](examples) [three](bare) [four](notes.ipynb#end)\n")
        self.write("docs/index.md", "![picture](picture.svg)\n")
        self.write("docs/picture.svg", "<svg/>")
        self.write("bare/file.txt", "not linked\n")
        cells = [{"cell_type": "markdown", "source": ["See [faq](docs/faq.md)."]},
                 {"cell_type": "code", "source": ["f[0](x)"], "outputs": [{"text": ["7\n"]}]}]
        self.write("notes.ipynb", json.dumps({"cells": cells}))
        done = self.run_tool("stage_docs.py", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.tree / "out"
        self.assertEqual((out / "README.md").read_text(),
                         "[one](docs/index.md) [two](examples/README.md) three [four](notes.md#end)\n")
        self.assertEqual((out / "notes.md").read_text(),
                         "See [faq](docs/faq.md).\n\n```python\nf[0](x)\n```\n\n```text\n7\n```\n")
        staged = sorted(str(file.relative_to(out)) for file in out.rglob("*") if file.is_file())
        self.assertEqual(staged, ["README.md", "docs/faq.md", "docs/index.md", "docs/picture.svg",
                                  "examples/README.md", "notes.md"])


if __name__ == "__main__":
    unittest.main()
