"""Networks of torch are read as the functions that they compute, or refused with what to do."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from anchorhead import AnchorheadError
from anchorhead.convert.onnx_files import mlp_from_onnx
from anchorhead.convert.torch_modules import ACTIVATIONS, BY_ONNX, OTHERS, mlp_of
from anchorhead.language.forms import mlp_of as mlp_of_program
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.mlp import IDENTITY

ACTIVE = [
    nn.ReLU(),
    nn.LeakyReLU(0.2),
    nn.LeakyReLU(-0.1),
    nn.ReLU6(),
    nn.Hardtanh(-0.3, 2),
    nn.Hardswish(),
    nn.Hardsigmoid(),
    nn.GELU(),
    nn.GELU("tanh"),
    nn.SiLU(),
    nn.Mish(),
    nn.ELU(0.7),
    nn.SELU(),
    nn.CELU(1.3),
    nn.Softplus(2.5),
    nn.Tanh(),
    nn.Sigmoid(),
    nn.Softsign(),
    nn.Softshrink(0.3),
    nn.Softshrink(0.0),
    nn.Tanhshrink(),
    nn.LogSigmoid(),
    nn.PReLU(init=0.15),
    nn.PReLU(6, init=0.15),
]


def build(*modules, dtype=torch.float64):
    return nn.Sequential(*modules).to(dtype).eval()


def assert_same(module, inputs, tokens=None, tolerance=1e-12):
    """The target's values are the module's, up to the rounding of the module."""
    target, dtype = mlp_of(module, tokens)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(200, inputs)) * 2).to(getattr(torch, dtype))
    expected = module(x).detach().double().numpy()
    assert np.abs(target.values(x.numpy()).reshape(expected.shape) - expected).max() <= tolerance
    return target, dtype


@pytest.mark.parametrize("activation", ACTIVE, ids=str)
def test_every_activation_is_the_one_of_torch(activation):
    torch.manual_seed(0)
    threshold = 2e-9 if isinstance(activation, nn.Softplus) else 1e-12
    target, _ = assert_same(build(nn.Linear(4, 6), activation, nn.Linear(6, 3)), 4, tolerance=threshold)
    assert len(target.hidden) == 1


def test_every_supported_activation_is_tested():
    assert {type(module) for module in ACTIVE} == {*ACTIVATIONS, nn.PReLU}


def test_weights_are_taken_bit_by_bit_and_the_dtype_is_reported():
    torch.manual_seed(1)
    module = build(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2, bias=False), dtype=torch.float32)
    target, dtype = mlp_of(module)
    assert dtype == "float32"
    assert np.array_equal(target.hidden[0].affine.weight, module[0].weight.detach().double().numpy())
    assert np.array_equal(target.readout.weight, module[2].weight.detach().double().numpy())
    assert not target.readout.bias.any()
    assert mlp_of(module.double())[1] == "float64"


SHAPES = {
    "linear alone": lambda: nn.Linear(4, 3),
    "linear maps in a row": lambda: build(
        nn.Linear(4, 5), nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 3), nn.Linear(3, 2)
    ),
    "activation first": lambda: build(nn.Tanh(), nn.Linear(4, 3)),
    "activation last": lambda: build(nn.Linear(4, 3), nn.Tanh()),
    "activations in a row": lambda: build(nn.Linear(4, 3), nn.Tanh(), nn.Softplus(), nn.Linear(3, 2)),
    "nested": lambda: build(build(nn.Linear(4, 3), build(nn.ReLU())), nn.Identity(), build(nn.Linear(3, 2))),
    "one activation used twice": lambda: (
        lambda act: build(nn.Linear(4, 3), act, nn.Linear(3, 3), act, nn.Linear(3, 2))
    )(nn.ReLU()),
    "flatten and dropout": lambda: build(nn.Flatten(), nn.Linear(4, 3), nn.Dropout(0.5), nn.ReLU(), nn.Linear(3, 2)),
    "weight norm": lambda: build(parametrizations.weight_norm(nn.Linear(4, 3)), nn.ReLU(), nn.Linear(3, 2)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_structures_keep_their_function(name):
    torch.manual_seed(2)
    assert_same(SHAPES[name]().double(), 4)


def test_linear_maps_in_a_row_are_not_multiplied_out():
    target, _ = mlp_of(build(nn.Linear(4, 5), nn.Linear(5, 3)))
    assert [layer.activations for layer in target.hidden] == [(IDENTITY,)]
    assert target.hidden[0].linear


def test_a_batch_norm_is_the_affine_map_of_its_running_statistics():
    torch.manual_seed(3)
    norm = nn.BatchNorm1d(5)
    module = nn.Sequential(nn.Linear(4, 5), norm, nn.ReLU(), nn.BatchNorm1d(5, affine=False), nn.Linear(5, 2)).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    module(torch.randn(100, 4, dtype=torch.float64))
    assert_same(module.eval(), 4)


def test_lazy_layers_are_read_once_they_have_weights():
    module = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2))
    with pytest.raises(AnchorheadError, match="run the network once"):
        mlp_of(module)
    module(torch.zeros(1, 4))
    assert_same(module.double(), 4)


def test_tokens_are_laid_out_one_after_the_other():
    torch.manual_seed(4)
    module = build(nn.Flatten(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    target, _ = mlp_of(module, tokens=3)
    x = np.random.default_rng(0).normal(size=(10, 3, 2))
    assert target.values(x).shape == (10, 3, 1)
    assert np.abs(target.values(x)[..., 0] - module(torch.from_numpy(x)).detach().numpy()).max() <= 1e-12


def test_targets_are_read_off_their_programs_again():
    module = build(nn.Linear(4, 6), nn.PReLU(6), nn.Linear(6, 3), nn.LeakyReLU(0.3))
    target, _ = mlp_of(module)
    x = np.random.default_rng(0).normal(size=(20, 4))
    assert np.array_equal(mlp_of_program(program_of(target)).values(x), target.values(x))


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x) ** 2


class Twice(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


def broken_linear(value):
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight[1, 2] = value
    return layer


def hooked():
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: 2 * output)
    return layer


def sparse():
    layer = nn.Linear(2, 2)
    layer.weight = nn.Parameter(layer.weight.detach().to_sparse())
    return layer


BAD = {
    "unsupported": (
        lambda: build(nn.Linear(2, 2), nn.Sequential(nn.LayerNorm(2))),
        r"layer 1\.0 \(LayerNorm\).*Softsign",
    ),
    "own module": (lambda: build(nn.Linear(2, 2), Own()), "layer 1 .Own.*nn.Sequential of its layers"),
    "own module alone": (Own, "nn.Sequential of its layers"),
    "own Sequential": (lambda: Twice(nn.Linear(2, 2)), "nn.Sequential of its layers"),
    "own activation": (lambda: build(nn.Linear(2, 2), type("Relu2", (nn.ReLU,), {})()), "Relu2"),
    "softmax": (lambda: build(nn.Linear(2, 2), nn.Softmax(-1)), "Softmax"),
    "training dropout": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)), r"layer 1 .*\.eval\(\)"),
    "training norm": (lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), r"layer 1 .*\.eval\(\)"),
    "norm without statistics": (lambda: build(nn.BatchNorm1d(2, track_running_stats=False)), "track_running_stats"),
    "no linear map": (lambda: build(nn.ReLU()), "how many inputs"),
    "empty": (build, "how many inputs"),
    "shapes": (lambda: build(nn.Linear(2, 3), nn.ReLU(), nn.Linear(4, 2)), "layer 2 .* takes 4 inputs.* makes 3"),
    "slopes": (lambda: build(nn.Linear(2, 3), nn.PReLU(2)), "2 slopes, but 3"),
    "half": (lambda: build(nn.Linear(2, 2), dtype=torch.float16), r"float16.*\.float\(\)"),
    "bfloat16": (lambda: build(nn.Linear(2, 2), dtype=torch.bfloat16), r"bfloat16.*\.float\(\)"),
    "complex": (lambda: nn.Linear(2, 2, dtype=torch.complex64), "complex64"),
    "meta": (lambda: nn.Linear(2, 2, device="meta"), "meta"),
    "sparse": (sparse, "sparse"),
    "NaN": (lambda: build(nn.ReLU(), broken_linear(float("nan"))), r"weight of layer 1 .Linear.*nan at \(1, 2\)"),
    "infinite": (lambda: broken_linear(float("inf")), r"inf at \(1, 2\)"),
    "infinite slope": (lambda: build(nn.Linear(2, 2), nn.LeakyReLU(float("inf"))), "layer 1 .*finite"),
    "negative beta": (lambda: build(nn.Linear(2, 2), nn.Softplus(-1.0)), "layer 1 .*positive"),
    "hooks": (lambda: build(hooked()), "layer 0 .*hooks"),
    "pruned": (lambda: build(prune.l1_unstructured(nn.Linear(2, 2), "weight", 1)), "hooks"),
    "flatten": (lambda: build(nn.Flatten(0), nn.Linear(2, 2)), "flattens axes 0"),
    "tokens": (lambda: build(nn.Linear(4, 3)), "tokens=2"),
    "no module": (lambda: "relu", "not a torch module"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_refused_with_what_to_do(name):
    make, message = BAD[name]
    with pytest.raises(AnchorheadError, match=message):
        mlp_of(make(), tokens=2 if name == "tokens" else None)


def test_dropout_that_drops_nothing_is_no_obstacle():
    assert mlp_of(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)).train())[0].outputs == 2


def test_the_error_lists_everything_that_is_supported():
    with pytest.raises(AnchorheadError) as caught:
        mlp_of(nn.Conv1d(1, 1, 1))
    assert all(kind.__name__ in str(caught.value) for kind in (*ACTIVATIONS, *OTHERS))


def test_a_softplus_that_jumps_is_refused():
    with pytest.raises(AnchorheadError, match=r"Softplus\(threshold=2\) jumps by 0.13"):
        mlp_of(nn.Sequential(nn.Linear(2, 2), nn.Softplus(threshold=2)))
    with pytest.raises(AnchorheadError, match=r"jumps by 8e\+02"):
        mlp_of(nn.Sequential(nn.Linear(2, 2), nn.Softplus(threshold=-800)))
    with pytest.raises(AnchorheadError, match="beta=0 of softplus"):
        mlp_of(nn.Sequential(nn.Linear(2, 2), nn.Softplus(beta=0, threshold=2)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return x + torch.tanh(self.inner(x))


BY_ONNX_FILES = {
    "Conv1d": (nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.AvgPool1d(3), nn.Flatten(), nn.Linear(3, 2)), (2, 5)),
    "Conv2d": (
        nn.Sequential(
            nn.ZeroPad2d(1), nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout2d(), nn.AvgPool2d(2)
        ),
        (1, 4, 4),
    ),
    "own forward": (Residual(), (4,)),
}


@pytest.mark.parametrize("name", BY_ONNX_FILES)
@pytest.mark.filterwarnings("ignore")
def test_where_an_onnx_file_leads_further_the_refusal_says_so(name, tmp_path):
    module, shape = BY_ONNX_FILES[name]
    with pytest.raises(AnchorheadError, match=r"torch\.onnx\.export\(model, .*'model\.onnx', dynamo=False\)"):
        mlp_of(module.eval())
    path, x = tmp_path / "model.onnx", torch.rand(2, *shape)
    torch.onnx.export(module, (x,), path, dynamo=False)
    target, _ = mlp_from_onnx(path)
    with torch.no_grad():
        theirs = module(x).reshape(2, -1).numpy()
    assert np.abs(target.values(x.reshape(2, -1).numpy()).astype(float) - theirs).max() <= 1e-5


def test_every_module_that_an_onnx_file_holds_is_tested():
    held = {type(one) for module, _ in BY_ONNX_FILES.values() for one in module.modules()}
    assert set(BY_ONNX) <= held


@pytest.mark.parametrize("layer", [nn.LayerNorm(2), nn.MaxPool1d(2), nn.LSTM(2, 2), nn.MultiheadAttention(2, 1)])
def test_where_an_onnx_file_is_refused_as_well_it_is_not_named(layer):
    with pytest.raises(AnchorheadError, match="cannot be converted") as caught:
        mlp_of(build(nn.Linear(2, 2), nn.Conv1d(2, 2, 1), layer))
    assert "onnx" not in str(caught.value)
