"""A network as a TransformerBridge of transformer-lens: hooks, caches and patching on real-valued inputs.

    bridge = to_transformer_lens(network)
    y, cache = bridge.run_with_cache(x)                    # x as the network takes it, a tensor
    cache["blocks.0.attn.hook_pattern"]                    # (batch, heads, tokens, tokens)

What is in it, and how the network's features and heads lie in it: see lens_layout. There is no tokenizer, no layer
norm, no feed-forward layer and no positional embedding: positions, registers and states are made by `embed`.
"""

from __future__ import annotations

import json
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.model_bridge.architecture_adapter import ArchitectureAdapter
from transformer_lens.model_bridge.generalized_components import (
    AttentionBridge,
    BlockBridge,
    EmbeddingBridge,
    LinearBridge,
    UnembeddingBridge,
)

from anchorhead.errors import AnchorheadError
from anchorhead.export import carried
from anchorhead.export.lens_layout import LensLayout, lay_out
from anchorhead.export.lens_model import LensModel
from anchorhead.network import Network

ARCHITECTURE = "AnchorheadAttentionOnly"
ANY_LENGTH = 2048
"""What the configuration says of a network that takes any number of tokens; nothing is cut off there."""
ABSENT_HOOKS = ("hook_resid_mid", "hook_mlp_out", "hook_attn_in", "hook_q_input", "hook_k_input", "hook_v_input")
"""Names of hooks that no block of ours would ever call."""


class LensBridge(TransformerBridge):
    """A TransformerBridge that gives what network.module() gives, for every input that the network takes.

    network        the network that it comes from, with its target and certificate. The certificate speaks of the
                   network as it computes; here the same sums run in another order, and no input is guarded. Its
                   weights are for its dtype: for float32 build the network with dtype="float32", do not cast
    feature_names  what each of the d_model places of the residual stream holds, and which block writes it first;
                   blocks behind that one may add to it in place, as a learner's steps do to its weights
    output_names   what each output means
    block_labels   for each block the layer of the network that it comes from
    head_labels    for each block, for each head, what it is for. A layer's own heads come first, with the network's
                   labels, then heads that see their own token alone and compute a linear map, then "unused" ones
    head_wiring    for each block, for each head, the tokens that ask, and the features that it asks with, asks
                   against, reads and writes
    token_labels   a method: what each token is, input, register or state. Patterns have a row and a column for every
                   token; the rows of tokens that do not ask are 0
    """

    network: Network
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    block_labels: tuple[str, ...]
    head_labels: tuple[tuple[str, ...], ...]
    head_wiring: tuple[tuple[str, ...], ...]

    def token_labels(self, tokens: int | None = None) -> tuple[str, ...]:
        """What each token of the stream is, when so many tokens enter."""
        stream, count = self.network.streams[0], self.network.embed.tokens or tokens
        if count is None:
            raise AnchorheadError("a network that takes any number of tokens: say how many enter")
        return tuple(f"{kind} {i}" for kind, many in stream.count(count).items() for i in range(many))

    def process_weights(self, *args: Any, **kwargs: Any) -> None:
        """Refused: outputs are numbers, not logits of a vocabulary, and centring them would change what is computed."""
        raise AnchorheadError(
            "folding and centring are for language models: they would change the outputs of this network. Use "
            "enable_compatibility_mode(no_processing=True)"
        )


class LensAttentionBridge(AttentionBridge):
    """Hooks for what the attention computes; hooks on scores and pattern change what is read."""

    supports_split_qkv_fork = False
    supports_attn_result = True

    def forward(self, hidden_states: Tensor, **unused: Any) -> tuple[Tensor, Tensor]:
        if self.original_component is None:
            raise RuntimeError("an attention without its module")
        read, pattern = self.original_component(
            self.hook_in(hidden_states),
            scored=self.hook_attn_scores,
            weighed=self.hook_pattern,
            projected=self._head_by_head if getattr(self.config, "use_attn_result", False) else None,
        )
        return self.hook_out(read), pattern

    def _head_by_head(self, z: Tensor) -> Tensor:
        heads, size = self._get_n_heads(), getattr(self.config, "d_head", 1)
        return self._compute_per_head_result(self.o.hook_in(z).unflatten(-1, (heads, size)), heads, size)


class LensAdapter(ArchitectureAdapter):
    """Where the parts of a LensModel are."""

    supports_generation = False
    supports_causal_loss = False
    supports_hf_output_attentions = False

    def __init__(self, cfg: TransformerBridgeConfig) -> None:
        super().__init__(cfg)
        projections = {name: LinearBridge(name=name) for name in "qkvo"}
        block = BlockBridge(
            name="layers",
            config=cfg,
            submodules={"attn": LensAttentionBridge(name="attn", config=cfg, submodules={**projections})},
        )
        block.hook_aliases = {name: at for name, at in block.hook_aliases.items() if name not in ABSENT_HOOKS}
        self.component_mapping = {
            "embed": EmbeddingBridge(name="tokens_in"),
            "blocks": block,
            "unembed": UnembeddingBridge(name="tokens_out"),
        }


def to_transformer_lens(network: Network) -> LensBridge:
    """The network, in its dtype and on the CPU; refused where a layer maps across tokens or is a Softmax in a token."""
    layout = lay_out(network)
    model = LensModel(network, layout).eval()
    cfg = _config(network, layout, len(model.layers))
    bridge = LensBridge(model, LensAdapter(cfg), None)
    bridge.network = network
    bridge.feature_names = tuple(layout.names)
    bridge.output_names = layout.readout.names
    bridge.block_labels = tuple(block.label for block in layout.blocks) or ("unused",)
    bridge.head_labels, bridge.head_wiring = model.head_labels, model.head_wiring
    return bridge


make = to_transformer_lens


def to_bytes(bridge: LensBridge, network: Network) -> bytes:
    """The bridge's state_dict as safetensors, with what its parts are called, and the network's texts, as metadata.

    It goes back into a bridge of the same network: bridge.load_state_dict(safetensors.torch.load_file(path)). To make
    that bridge, the network's own file is needed: to_transformer_lens(load("net.safetensors")).
    """
    said = {
        "feature_names": bridge.feature_names,
        "output_names": bridge.output_names,
        "block_labels": bridge.block_labels,
        "head_labels": bridge.head_labels,
        "head_wiring": bridge.head_wiring,
        "n_heads": bridge.cfg.n_heads,
        "d_head": bridge.cfg.d_head,
    }
    texts = {name: json.dumps(one, ensure_ascii=False) for name, one in said.items()}
    tensors = {name: tensor.detach().contiguous() for name, tensor in bridge.state_dict().items()}
    return safetensors.torch.save(tensors, {**texts, **carried.texts(network)})


def _config(network: Network, layout: LensLayout, blocks: int) -> TransformerBridgeConfig:
    stream = network.streams[0]
    return TransformerBridgeConfig(
        d_model=layout.width,
        d_head=layout.head_size,
        n_heads=layout.heads,
        n_layers=blocks,
        n_ctx=stream.tokens or ANY_LENGTH,
        d_vocab=network.embed.inputs,
        d_vocab_out=network.streams[-1].width,
        architecture=ARCHITECTURE,
        model_name="anchorhead",
        # scores are not divided: queries and keys are the network's own
        use_attn_scale=True,
        attn_scale=1.0,
        normalization_type=None,
        positional_embedding_type="none",
        attention_dir="bidirectional",
        attn_only=True,
        d_mlp=0,
        dtype=getattr(torch, network.dtype),
        device="cpu",
    )
