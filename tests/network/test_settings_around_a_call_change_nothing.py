"""The arithmetic that certificates speak of is in force in every evaluation, whatever torch is set to around it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from threading import Barrier, Thread

import numpy as np
import pytest
import torch

from anchorhead.incontext import gradient_descent
from anchorhead.incontext.settled import states
from anchorhead.network import Embed, Linear, Network
from anchorhead.network.stated_arithmetic import stated_arithmetic
from tests import networks as table

X = torch.linspace(-1, 1, 6).reshape(3, 2)


@contextmanager
def matmul_precision(name: str):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def default_dtype(kind: torch.dtype):
    torch.set_default_dtype(kind)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


AROUND = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "medium": lambda: matmul_precision("medium"),
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
    "another device": lambda: torch.device("meta"),
    "another dtype": lambda: default_dtype(torch.float16),
}


def wide(size: int = 512) -> Network:
    """Products of a size for which processors with bfloat16 use it, where they are allowed to."""
    rng = np.random.default_rng(0)
    many = rng.normal(size=(size, 2)).astype(np.float32)
    embed = Embed(many, np.zeros(size, np.float32), tokens=None)
    return Network([embed, Linear(rng.normal(size=(size, size)).astype(np.float32) / 20)])


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", [*table.names("layer", "float32"), "wide"])
def test_a_call_gives_the_same_numbers(around: str, name: str):
    plain, inside = (wide() if name == "wide" else table.row_of(name).build("float32") for _ in range(2))
    x = torch.randn(256, *X.shape, generator=torch.Generator().manual_seed(1)) / 2
    x = x if plain.token_axis else x[..., :1, :].squeeze(-2)
    if plain.embed.inputs != 2 or plain.embed.tokens not in (None, 3):
        x = x.new_full((256, plain.embed.tokens or 3, plain.embed.inputs), 0.3)
    with AROUND[around]():
        found, maps, bare = inside(x), inside.attention(x[:2]), inside.module()(x)
    assert torch.equal(found, plain(x))
    assert torch.equal(bare, plain.module()(x))
    assert all(torch.equal(*pair) for pair in zip(maps, plain.attention(x[:2]), strict=True))


@pytest.mark.parametrize("around", AROUND)
def test_a_learner_gives_the_same_path(around: str):
    X, y = np.random.default_rng(0).uniform(-1, 1, (6, 2)), np.linspace(-1, 1, 6)
    plain, inside = (
        gradient_descent(features=2, steps=3, rate=0.1, momentum=0.5, dtype="float32", on=(-1, 1)) for _ in range(2)
    )
    prompt = plain.prompt(X, y)
    with AROUND[around]():
        found, last = inside(prompt, path=True), list(states(inside, prompt))
    assert np.array_equal(found, plain(prompt, path=True))
    assert all(np.array_equal(one[1], other[1]) for one, other in zip(last, states(plain, prompt), strict=True))


def test_a_first_call_in_inference_mode_leaves_gradients_to_later_ones():
    network, other = (table.row_of("attention (float32)").build("float32") for _ in range(2))
    with torch.inference_mode():
        network(X)
        module = network.module()
    gradients = []
    for run in (network, other, module):
        x = X.clone().requires_grad_()
        run(x).sum().backward()
        gradients.append(x.grad)
    assert torch.equal(gradients[0], gradients[1])
    assert torch.allclose(gradients[0], gradients[2], rtol=1e-5)
    assert all(p.grad is not None for p in module.parameters() if p.requires_grad)


def test_settings_of_the_process_come_back_when_the_last_evaluation_ends():
    setting = torch.backends.mkldnn.matmul
    entered, left = Barrier(3, timeout=30), Barrier(3, timeout=30)
    seen: list[str] = []

    def evaluate(first: bool) -> None:
        with stated_arithmetic(torch.device("cpu")):
            entered.wait()
        if first:
            left.wait()

    def evaluate_longer() -> None:
        with stated_arithmetic(torch.device("cpu")):
            entered.wait()
            left.wait()
            seen.append(setting.fp32_precision)

    with matmul_precision("medium"):
        before = setting.fp32_precision
        threads = [Thread(target=evaluate, args=(True,)), Thread(target=evaluate_longer)]
        for thread in threads:
            thread.start()
        entered.wait()
        left.wait()
        for thread in threads:
            thread.join()
        assert before == "bf16"
        assert seen == ["ieee"]
        assert setting.fp32_precision == before
        assert torch.get_float32_matmul_precision() == "medium"


def test_an_inherited_setting_is_inherited_again():
    setting = torch.backends.mkldnn.matmul
    general, own = torch.backends.fp32_precision, setting.fp32_precision
    try:
        setting.fp32_precision, torch.backends.fp32_precision = "none", "bf16"
        with stated_arithmetic(torch.device("cpu")):
            assert setting.fp32_precision == "ieee"
        assert setting.fp32_precision == "bf16"
        torch.backends.fp32_precision = "none"
        assert setting.fp32_precision == "none"
    finally:
        torch.backends.fp32_precision, setting.fp32_precision = general, own


COMPILED = """
import numpy as np, torch
from anchorhead.network import Attention, Embed, Network

x = torch.linspace(-1, 1, 6).reshape(3, 2)
head = Attention(*(np.full((1, 1, 2), one, np.float32) for one in (0.7, 0.9, 1.3)), np.full((1, 2, 1), 1.1, "f4"))
module = Network([Embed(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)), head]).module().requires_grad_(False)
plain = module(x)
with torch.autocast("cpu", dtype=torch.bfloat16):
    assert torch.equal(torch.compile(module, backend="eager", fullgraph=True)(x), plain)
    exported = torch.export.export(module, (x,))
assert torch.equal(exported.module()(x), plain)
"""


@pytest.mark.slow
def test_compiled_and_exported_modules_leave_autocast_outside():
    """In a process of its own: torch does not compile what checks annotations (tests/type_checks.py)."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
