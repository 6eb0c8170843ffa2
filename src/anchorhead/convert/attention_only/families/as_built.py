"""Whether a model computes what its classes say: nothing wrapped around them, hooked to them or put in their place.

What is proven of a sublayer is proven of down(phi(up z)) with the weights that its modules hold, behind a norm of which
the image is known. An adapter, a hook or a forward of its own makes that another function, and what is not where
transformers itself builds it would be lost in a saved folder. All of it is refused by name; parametrizations alone,
which only say how a weight is computed, are resolved.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize

from anchorhead.errors import AnchorheadError

MERGE = (
    "merge adapters into the weights first, peft.PeftModel.from_pretrained(model, adapter).merge_and_unload(), or load "
    "the model without them"
)
MOVING_HOOKS = ("AlignDevicesHook", "CpuOffload", "SequentialHook")
"""Those of accelerate that move tensors between devices, and change no number."""
GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks")


def require_numbers(model: Any) -> None:
    """Refuses weights that are adapted, quantised or elsewhere."""
    for name, module in model.named_modules():
        wraps = isinstance(getattr(module, "base_layer", None), nn.Module)
        if wraps or type(module).__module__.partition(".")[0] == "peft":
            raise AnchorheadError(
                f"{name or 'the model'} is an adapter, {_named(type(module))}, no plain linear map: {MERGE}"
            )
    if getattr(model, "_hf_peft_config_loaded", False):
        raise AnchorheadError(f"this {type(model).__name__} has adapters ({', '.join(model.peft_config)}): {MERGE}")
    quantised = getattr(model.config, "quantization_config", None)
    if quantised is not None or getattr(model, "hf_quantizer", None) is not None:
        raise AnchorheadError(
            f"this {type(model).__name__} is quantised, and its weights are no plain numbers: load it without "
            "quantization_config, or call model.dequantize()"
        )
    for name, weight in model.named_parameters():
        if weight.is_meta:
            way = "load the model whole, without device_map or offloading"
            raise AnchorheadError(f"{name} has no numbers (it is on the meta device): {way}")


def resolve_parametrizations(model: Any) -> None:
    """Puts the weights themselves where parametrizations compute them: such a model saves what it computes with."""
    for name, module in list(model.named_modules()):
        for key in list(getattr(module, "parametrizations", ())) if parametrize.is_parametrized(module) else ():
            if not torch.equal(getattr(module, key), getattr(module, key)):
                raise AnchorheadError(
                    f"the parametrization of {name}.{key} gives another weight each time: call model.eval(), or "
                    f"torch.nn.utils.parametrize.remove_parametrizations(module, {key!r})"
                )
            parametrize.remove_parametrizations(module, key, leave_parametrized=True)


def require_structure(model: Any, replaced: list[str]) -> None:
    """Refuses a model that differs from what transformers builds of its config: a saved folder would lose that.

    replaced   names of modules that may be any: heads take their place
    """
    try:
        with torch.device("meta"):
            built: Any = type(model)(copy.deepcopy(model.config))
    except Exception as error:  # a config can be wrong in any way, and each raises something else
        raise AnchorheadError(
            f"transformers builds no {type(model).__name__} of the model's config: {error}"
        ) from error
    skipped = tuple(f"{name}." for name in replaced)
    for there, wanted in ((_places(model), _places(built)), (_shapes(model), _shapes(built))):
        for name in [*wanted, *there]:
            if there.get(name) != wanted.get(name) and not f"{name}.".startswith(skipped):
                raise AnchorheadError(
                    f"{name} is {there.get(name, 'nothing')}, where transformers builds {wanted.get(name, 'nothing')} "
                    f"of the model's config: a folder of it would not load as it is. Change the config along with the "
                    "model, or convert a model inside it"
                )


def _places(model: Any) -> dict[str, str]:
    """The class of each module, and where else it stands if it is shared."""
    first: dict[int, str] = {}
    found = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if ".parametrizations." not in f".{name}.":
            kind, other = parametrize.type_before_parametrizations(module), first.setdefault(id(module), name)
            found[name] = f"a {_named(kind)}{f', that of {other}' * (other != name)}"
    return found


def _shapes(model: Any) -> dict[str, str]:
    """The shape of each weight that a folder holds, parametrizations resolved."""
    found = {name: w.shape for name, w in model.state_dict().items() if ".parametrizations." not in name}
    for name, module in model.named_modules():
        for key in getattr(module, "parametrizations", ()) if parametrize.is_parametrized(module) else ():
            found[f"{name}.{key}"] = getattr(module, key).shape
    return {name: f"a weight of {tuple(shape)}" for name, shape in found.items()}


def require_undisturbed(layer: nn.Module, name: str, paths: list[str]) -> None:
    """Refuses hooks, and forwards of their own, of a transformer layer and of all on the way to parts of it."""
    for hooks in GLOBAL_HOOKS:
        if getattr(torch_module, hooks, None):
            raise AnchorheadError(
                "there are forward hooks for all modules (torch.nn.modules.module.register_module_forward_hook), which "
                "may change any output: remove them before converting"
            )
    on_the_way = dict.fromkeys(start for path in paths for start in _starts(path))
    for path in ("", *on_the_way):
        module, label = layer.get_submodule(path), f"{name}.{path}".rstrip(".")
        for hook in [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]:
            # transformers' own, which note outputs and change none, stay once they were needed
            if getattr(hook, "__module__", None) != "transformers.utils.output_capturing":
                raise AnchorheadError(
                    f"{label} has the forward hook {getattr(hook, '__qualname__', type(hook).__name__)}, which may "
                    "change what goes in or comes out: remove it (handle.remove(); of torch.nn.utils' weight_norm, "
                    "spectral_norm or prune, the remove function of each) before converting"
                )
        kind = parametrize.type_before_parametrizations(module)
        if not kind.__module__.startswith(("torch.nn.modules.", "transformers.")):
            raise AnchorheadError(f"{label} is a {_named(kind)}, a class of neither torch nor transformers itself")
        own = next(_own_methods(module), None)
        if own is not None:
            raise AnchorheadError(
                f"{label} has a {own} of its own in the place of that of {_named(type(module))}, which may compute "
                f"anything: delete it before converting (of accelerate's, those stay that only move tensors)"
            )


def _starts(path: str) -> Iterator[str]:
    parts = path.split(".")
    return (".".join(parts[: end + 1]) for end in range(len(parts)))


def _own_methods(module: nn.Module) -> Iterator[str]:
    """Names of methods that the instance holds itself, other than the class's, or accelerate's around that."""
    for name, held in vars(module).items():
        as_in_class = _is_classes(module, held, name) or (name == "forward" and _moves_only(module, held))
        compiled = name == "_compiled_call_impl" and held is not None
        if compiled or (callable(getattr(type(module), name, None)) and not as_in_class):
            yield name


def _is_classes(module: nn.Module, held: Any, name: str) -> bool:
    return isinstance(held, MethodType) and (held.__self__, held.__func__) == (
        module,
        getattr(type(module), name, None),
    )


def _moves_only(module: nn.Module, forward: Any) -> bool:
    """Whether a forward is the class's with a hook of accelerate around it that moves tensors between devices."""
    if not (isinstance(forward, functools.partial) and forward.args == (module,) and not forward.keywords):
        return False
    made = getattr(forward.func, "__module__", None), getattr(forward.func, "__qualname__", None)
    if made != ("accelerate.hooks", "add_hook_to_module.<locals>.new_forward"):
        return False
    hooks = [vars(module).get("_hf_hook")]
    for hook in hooks:
        if type(hook).__module__ != "accelerate.hooks" or type(hook).__name__ not in MOVING_HOOKS:
            return False
        hooks.extend(getattr(hook, "hooks", ()))
    return _is_classes(module, vars(module).get("_old_forward"), "forward")


def _named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
