"""Checks the bound of a network of several parts again: taken apart, each part from its stored weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.network import Network
from anchorhead.proof.arithmetic import arithmetic_of
from anchorhead.proof.check_mlp import bound_again
from anchorhead.proof.grid import prove_grid
from anchorhead.proof.grid_form import GridForm, grid_form
from anchorhead.proof.overflow import require_room
from anchorhead.proof.parts import Share, Stated, grid_share, network_share, parts_statement, total_error
from anchorhead.proof.split import split_parts
from anchorhead.proof.statement import Statement
from anchorhead.targets.expressions import Expressions
from anchorhead.targets.mlp import Mlp
from anchorhead.targets.parts import GridPart
from anchorhead.targets.record import TargetRecord


def check_parts(network: Network, record: TargetRecord, certificate: Certificate) -> Statement:
    """What follows from the stored weights; raises CertificateError if nothing does."""
    try:
        target = Expressions.from_record(record)
        widths = [[int(size) for size in row] for row in record.data["widths"]]
        found = target.parts
    except (AnchorheadError, KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"the stored target cannot be read: {error}") from error
    _check_shapes(network, target, certificate)
    parts, sums = split_parts(network, widths)
    if len(parts) != len(found.grids) + (found.network is not None):
        raise CertificateError(f"the network has {len(parts)} parts, the target other ones: {found.found()}")
    known = [_of_grid(own, part, target, weight) for part, own, weight in zip(found.grids, parts, sums, strict=False)]
    if found.network is not None:
        known.append(_of_neurons(parts[-1], found.network, record, target, sums[-1], certificate))
    shares, stated = zip(*known, strict=True)
    total, rounding = total_error(shares, arithmetic_of(network.dtype))
    return parts_statement(stated, total, rounding, str(target))


def _check_shapes(network: Network, target: Expressions, certificate: Certificate) -> None:
    """Refuses a network, or a certificate, for other inputs and outputs than the target's."""
    tokens, features = target.tokens or 1, target.input_shape[-1]
    given = network.embed.tokens, network.embed.inputs, network.token_axis, network.streams[-1].width
    if given != (tokens, features, target.tokens is not None, target.columns) or network.output != "input":
        raise CertificateError(f"the network is not one from {target.input_shape} to {target.columns} a token")
    box = certificate.on.broadcast_to((tokens, features))
    low, high = (tuple(np.asarray(end, np.float64).reshape(-1).tolist()) for end in (box.low, box.high))
    if low != target.low or high != target.high:
        raise CertificateError(f"the certificate is for {certificate.on}, the target for {target}")
    require_room(network, box)


def _of_grid(network: Network, part: GridPart, target: Expressions, weight: np.ndarray) -> tuple[Share, Stated]:
    form = grid_form(network)
    if form.tokens != target.tokens:
        raise CertificateError("a grid reads other tokens than the network has")
    places = tuple(target.variables.index(name) for name in part.variables)
    if form.axes != places:
        raise CertificateError(f"a grid has the axes {form.axes}, its part of the target {places}")
    columns = _columns(weight)
    width = weight.shape[1]
    order = []
    for output in part.outputs:
        token, column = divmod(output, target.columns)
        if column not in columns:
            raise CertificateError(f"output {output} does not read {part}")
        order.append(token * width + columns.index(column))
    low, high = (tuple(end[place] for place in places) for end in (target.low, target.high))
    _check_hidden(form, part, target, low, high)
    own = [part.expressions[output] for output in part.outputs]
    atom = form.only(order)
    try:
        bound = prove_grid(atom, own, part.variables, low, high, arithmetic_of(network.dtype))
    except AnchorheadError as error:
        raise CertificateError(f"the stored network does not prove its bound: {error}") from error
    stated = Stated(part, atom.sides, bound.terms(), "")
    return grid_share(part, atom, low, high, bound.total, target.outputs), stated


def _columns(weight: np.ndarray) -> list[int]:
    """The output to which each feature of a part is added, once and as it is."""
    if not np.isin(weight, (0, 1)).all() or (weight.sum(axis=0) != 1).any() or (weight.sum(axis=1) > 1).any():
        raise CertificateError("the last map does more than add up what the parts give")
    return weight.argmax(axis=0).tolist()


def _check_hidden(form: GridForm, part: GridPart, target: Expressions, low: Any, high: Any) -> None:
    """Refuses where a token is kept from an input on which what it reads depends; the origin must be in the box."""
    for output in part.outputs:
        hidden = form.hidden[output // target.columns]
        names = [name for name, away in zip(part.variables, hidden, strict=True) if away]
        needed = set(names) & set(part.expressions[output].variables)
        if needed:
            raise CertificateError(f"output {output} depends on {', '.join(sorted(needed))}, hidden from its token")
    origins = form.atom.origins.astype(np.float64)
    asked = form.hidden.any(axis=0)
    if ((origins < low) | (origins > high))[asked].any():
        raise CertificateError("what stands for a hidden input lies outside the box")


def _of_neurons(
    network: Network,
    target: Mlp,
    record: TargetRecord,
    whole: Expressions,
    weight: np.ndarray,
    certificate: Certificate,
) -> tuple[Share, Stated]:
    if not np.array_equal(weight, np.eye(whole.columns)):
        raise CertificateError("the last map does more than add up what the parts give")
    stored: Mapping[str, Any] = record.data.get("neurons") or {}
    own = (target.with_neurons() if (whole.tokens or 1) > 1 else target).record()
    extra = {name.removeprefix("neurons."): array for name, array in record.arrays.items()}
    shapes = {name: array for name, array in extra.items() if name not in own.arrays}
    data = {**own.data, **{name: stored.get(name) for name in ("shapes", "assigned")}}
    again = bound_again(network, TargetRecord(own.kind, data, {**shapes, **own.arrays}), certificate.on)
    error = (again.bound.approximation + again.bound.rounding) * (1 + 1e-12)
    stated = Stated(None, (), again.statement.terms, again.statement.method)
    return network_share(target, np.array(whole.low), np.array(whole.high), error), stated
