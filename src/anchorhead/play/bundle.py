"""Plain JavaScript modules as one script: browsers refuse `import` in pages that are opened from a file.

Each module becomes a function that is called once and returns what it exports, in an order in which every module comes
after those that it imports. Four forms are known, each at the start of a line:

    import { a, b as c } from "./x.js";      export function f      export const c =      export class C

Anything else that begins with `import` or `export` is refused, in a text of several lines as well: a bundler that
guesses would make a page that fails in the browser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath

from anchorhead.errors import AnchorheadError

_IMPORT = re.compile(r'^import \{([\w\s,$]*)\} from "(\.[^"\n]*\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) ([\w$]+)", re.MULTILINE)
_LEFT = re.compile(r"^[ \t]*(?:import|export)\b[^\n]*|\bimport\s*[(.][^\n]*", re.MULTILINE)
_BINDING = re.compile(r"([\w$]+)(?:\s+as\s+([\w$]+))?")
_BREAKS_HTML = re.compile(r"</script|<!--", re.IGNORECASE)


def bundle(modules: Mapping[str, str], first: str) -> str:
    """One script that runs the module `first`, and before it all that it needs.

    modules  texts by name: {"app.js": …, "views/head.js": …}
    """
    exports = {name: _exports(name, text) for name, text in modules.items()}
    order = _order(modules, first)
    variables = {name: f"module{number}" for number, name in enumerate(order)}
    return "\n".join(_wrapped(name, modules[name], exports, variables) for name in order)


def _imports(name: str, text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """For every import of a module: the other's name, and what each thing is called there and here."""
    found = []
    for braces, path in _IMPORT.findall(text):
        bindings = []
        for one in filter(None, (part.strip() for part in braces.split(","))):
            match = _BINDING.fullmatch(one)
            if match is None:
                raise AnchorheadError(f'{name}: {one!r} is not a name to import: write a, or a as b, from "{path}"')
            bindings.append((match[1], match[2] or match[1]))
        found.append((normpath(join(dirname(name), path)), bindings))
    return found


def _exports(name: str, text: str) -> list[str]:
    left = _LEFT.search(_EXPORT.sub("", _IMPORT.sub("", text)))
    if left is not None:
        raise AnchorheadError(
            f'{name}: {left[0].strip()!r} is not a form that is known here: write import {{ a }} from "./x.js"; '
            "export function, export const or export class"
        )
    if broken := _BREAKS_HTML.search(text):
        raise AnchorheadError(f"{name}: {broken[0]!r} would end the script in a page: write it in two pieces")
    return [found for _, found in _EXPORT.findall(text)]


def _order(modules: Mapping[str, str], first: str) -> list[str]:
    """The modules that `first` needs, each after those that it imports."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise AnchorheadError(f"modules import each other in a circle: {' > '.join((*path, name))}")
        if name not in modules:
            raise AnchorheadError(f"{path[-1] if path else 'the page'} imports {name}, which is not there")
        if name not in order:
            for other, _ in _imports(name, modules[name]):
                visit(other, (*path, name))
            order.append(name)

    visit(first, ())
    return order


def _wrapped(name: str, text: str, exports: Mapping[str, list[str]], variables: Mapping[str, str]) -> str:
    lines = []
    for other, bindings in _imports(name, text):
        for there, _ in bindings:
            if there not in exports[other]:
                raise AnchorheadError(f"{name} imports {there}, which {other} does not export")
        taken = ", ".join(there if there == here else f"{there}: {here}" for there, here in bindings)
        lines.append(f"const {{ {taken} }} = {variables[other]};")
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub("", text)).strip()
    returned = f"return {{ {', '.join(exports[name])} }};"
    return "\n".join([f"// {name}", f"const {variables[name]} = (() => {{", *lines, body, returned, "})();"])
