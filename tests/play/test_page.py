"""The page without a browser: one small file that asks for nothing, made of modules in forms that are known."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anchorhead.cli import app
from anchorhead.errors import AnchorheadError
from anchorhead.heads.tables.table import frontiers
from anchorhead.language.targets import NAMED
from anchorhead.play.bundle import bundle
from anchorhead.play.tables import tables


def test_the_page_is_one_file_below_a_megabyte(page_file):
    assert page_file.stat().st_size < 1_000_000


def test_the_page_asks_for_nothing(page_file):
    text = page_file.read_text("utf-8")
    assert set(re.findall(r"https?://[^\s\"'`<>)]*", text)) <= {"http://www.w3.org/2000/svg"}
    assert re.findall(r"""<(?:script|link|img)[^>]*(?:src|href)=["'](?!data:,)""", text) == []
    assert re.search(r"\b(?:eval|Function|fetch|XMLHttpRequest|WebSocket)\s*\(", text) is None
    assert "default-src 'none'" in text


def test_modules_run_after_those_that_they_import():
    modules = {
        "app.js": 'import { a, b as c } from "./views/one.js";\nuse(a, c);',
        "views/one.js": 'import { b } from "../two.js";\nexport const a = b;\nexport function f() {}\nexport { a };',
        "two.js": "export class b {}\n",
    }
    with pytest.raises(AnchorheadError, match=r"export \{ a \}"):
        bundle(modules, "app.js")
    modules["views/one.js"] = 'import { b } from "../two.js";\nexport const a = b;\nexport function b2() {}'
    with pytest.raises(AnchorheadError, match="imports b, which"):
        bundle(modules, "app.js")
    modules["views/one.js"] = modules["views/one.js"].replace("a = b;", "a = b;\nexport const b3 = 1;")
    modules["app.js"] = modules["app.js"].replace("b as c", "b3 as c")
    text = bundle(modules, "app.js")
    assert text.index("// two.js") < text.index("// views/one.js") < text.index("// app.js")
    assert "const { a, b3: c } = module1;" in text
    assert "export" not in text
    assert "import" not in text


@pytest.mark.parametrize(
    "line",
    [
        'import * as x from "./x.js";',
        'import x from "./x.js";',
        'import "./x.js";',
        "import { a } from './x.js';",
        'import { a } from "x";',
        'import { a } from "./x.js"',
        '  import { a } from "./x.js";',
        'const x = await import("./x.js");',
        "console.log(import.meta.url);",
        "export default 3;",
        "export let a = 3;",
        'export * from "./x.js";',
        "export const { a } = b;",
        'const text = "</script>";',
    ],
)
def test_other_forms_are_refused(line):
    with pytest.raises(AnchorheadError, match=r"app\.js"):
        bundle({"app.js": f"const b = 1;\n{line}\n", "x.js": "export const a = 1;\n"}, "app.js")


def test_circles_and_missing_modules_are_named():
    with pytest.raises(AnchorheadError, match=r"a\.js > b\.js > a\.js"):
        bundle({"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";'}, "a.js")
    with pytest.raises(AnchorheadError, match=r"a\.js imports gone\.js"):
        bundle({"a.js": 'import { b } from "./gone.js";'}, "a.js")


def test_tables_hold_every_shipped_head_with_its_bound():
    found = tables()
    assert [one["name"] for one in found["named"]] == list(NAMED)
    assert len(found["heads"]) == len(frontiers())
    for told, known in zip(found["heads"], frontiers(), strict=True):
        assert (told["function"], tuple(told["on"]), told["dtype"]) == (
            known.function,
            (known.low, known.high),
            known.dtype,
        )
        for (bound, origin, bias, parts), entry in zip(told["heads"], known.heads, strict=True):
            assert bound == entry.bound
            kind = entry.atom.bias.dtype.type
            assert (kind(origin), kind(bias)) == (kind(entry.atom.origin), entry.atom.bias[0])
            for part, weights in zip(parts, entry.atom.parts, strict=True):
                for numbers, array in zip(part, (weights.slopes, weights.offsets, weights.values[:, 0]), strict=True):
                    assert [kind(one) for one in numbers] == list(array)


def test_play_writes_the_page_and_opens_it(tmp_path, monkeypatch, page_file):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    file = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["play", "-o", str(file)])
    assert done.exit_code == 0
    assert str(file) in done.output
    assert opened == [file.as_uri()]
    assert file.read_text("utf-8") == page_file.read_text("utf-8")


def test_play_without_a_file_keeps_one_page_for_the_user(tmp_path, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("opened"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = CliRunner().invoke(app, ["play", "--no-open"])
    assert done.exit_code == 0
    file = Path(done.output.partition(": ")[2].strip())
    assert file == tmp_path / "cache" / "anchorhead" / "playground.html"
    assert file.is_file()


def test_play_says_so_where_there_is_no_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    done = CliRunner().invoke(app, ["play", "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 0
    assert "No browser" in done.output


def test_play_refuses_what_cannot_be_written(tmp_path):
    done = CliRunner().invoke(app, ["play", "-o", str(tmp_path / "none" / "page.html")])
    assert done.exit_code == 1
    assert "there is no folder" in done.output


def test_the_page_comes_without_torch():
    code = "import sys, anchorhead.play as play; play.page(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.lower()) is False
