"""The suites that solve, as other processors run them: all must be green whatever the last digits of a library are.

    python -m tools.portable            every combination
    python -m tools.portable --list     which there are
    python -m tools.portable Zen        some, by name
    python -m tools.portable Zen -- tests/heads -x     with arguments for pytest instead of the suites

What varies, with the variable that a library reads when it is loaded:

    OPENBLAS_CORETYPE          the kernels of numpy's and scipy's linear algebra (each has an OpenBLAS of its own)
    NPY_DISABLE_CPU_FEATURES   numpy's own loops: exp, sin, sums
    ATEN_CPU_CAPABILITY        torch's own loops: softmax, sums ("default" is the one without vectors)
    MKL_CBWR                   torch's linear algebra (MKL_ENABLE_INSTRUCTIONS changes nothing on processors of others)
    OMP_NUM_THREADS            how products and sums are shared out

Not every value with every other, which would take hours: each value at least once, and those together that one
processor has together. A kernel that this processor cannot run is left out, with a word.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

SUITES = tuple(
    f"tests/{name}"
    for name in ("heads", "constructions", "convert", "export", "incontext", "lemmas", "proof", "language")
)
NEEDS = {"SkylakeX": "AVX512_SKX", "Haswell": "AVX2", "Zen": "AVX2", "Sandybridge": "AVX", "Prescott": "SSE3"}
"""What numpy calls that which the kernels of OpenBLAS need."""


@dataclass(frozen=True)
class Combination:
    """kernels: OpenBLAS's name; loops: of numpy that are left out; vectors: of torch; products: of MKL, its own choice
    if empty."""

    kernels: str
    loops: str
    vectors: str
    threads: int
    products: str = ""

    def variables(self, features: dict[str, bool], dispatched: list[str]) -> dict[str, str]:
        """The environment that it is."""
        left_out = {"none": (), "AVX512": ("X86_V4", "AVX512"), "AVX2": ("X86_V3", "X86_V4", "AVX")}[self.loops]
        names = [one for one in dispatched if features.get(one) and one.startswith(left_out)]
        found = {
            "OPENBLAS_CORETYPE": self.kernels,
            "ATEN_CPU_CAPABILITY": self.vectors,
            "OMP_NUM_THREADS": str(self.threads),
        }
        found |= {"NPY_DISABLE_CPU_FEATURES": " ".join(names)} if names and left_out else {}
        return found | ({"MKL_CBWR": self.products} if self.products else {})


COMBINATIONS = (
    Combination("Haswell", loops="AVX512", vectors="avx2", threads=2, products="AVX2"),
    Combination("Zen", loops="AVX512", vectors="avx2", threads=1),
    Combination("Sandybridge", loops="AVX2", vectors="default", threads=1, products="COMPATIBLE"),
    Combination("Prescott", loops="AVX2", vectors="default", threads=2),
    Combination("SkylakeX", loops="none", vectors="avx2", threads=1),
)


def main(given: list[str]) -> int:
    """How many combinations failed."""
    from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched
    from numpy._core._multiarray_umath import __cpu_features__ as features

    names, _, rest = " ".join(given).partition("--")
    names, listed = names.split(), rest.strip() == "list"
    unknown = set(names) - set(NEEDS)
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))}: not one of {', '.join(NEEDS)}")
    failed = []
    for one in COMBINATIONS:
        if names and one.kernels not in names:
            continue
        if not features.get(NEEDS[one.kernels]):
            print(f"{one.kernels}: left out, this processor has no {NEEDS[one.kernels]}", flush=True)
            continue
        chosen = one.variables(features, dispatched)
        print(f"{one.kernels}:", " ".join(f"{name}={value!r}" for name, value in chosen.items()), flush=True)
        if listed:
            continue
        start = time.perf_counter()
        arguments = rest.split() or ["-n", "2", *SUITES]
        command = [sys.executable, "-m", "pytest", *arguments]
        code = subprocess.run(command, env={**os.environ, **chosen}, check=False).returncode
        print(f"{one.kernels}: {'failed' if code else 'green'} after {time.perf_counter() - start:.0f} s", flush=True)
        failed += [one.kernels] * bool(code)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
