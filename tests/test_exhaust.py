"""tools.exhaust: every float is tried once, what it finds is exact, and a bound that is too small is found out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.tables.gate_table import all_gates
from anchorhead.heads.tables.self_key_table import self_key_frontiers
from anchorhead.heads.tables.table import frontiers
from anchorhead.language.expressions.precision import precision
from tools.exhaust import table
from tools.exhaust.__main__ import main
from tools.exhaust.floats import Inputs, drawn, floats
from tools.exhaust.jobs import PATHS, Job, jobs
from tools.exhaust.reference import ball, values
from tools.exhaust.run import State, exhaust
from tools.exhaust.walk import Walk

ROOT = Path(__file__).parents[1]
TABLE, PAGE = ROOT / "benchmarks" / "exhausted.csv", ROOT / "docs" / "every_float.md"
CPU = torch.device("cpu")


JOBS = {job.name: job for job in jobs("cpu", ("float32", "float16", "bfloat16"))}
FUNCTIONS = {str(job.expression): job for job in JOBS.values() if job.dtype == "float32"}


def with_head(job: Job, **changes: object) -> Job:
    """The job of its last head alone, changed."""
    return replace(job, heads=(replace(job.heads[-1], **changes),))


def walked(job: Job, most: int | None = None, size: int = 2**16) -> Walk:
    walk = Walk(job, job.inputs(most), CPU)
    walk.go(size, lambda: True)
    assert walk.complete
    return walk


def all_floats(inputs: Inputs, size: int) -> torch.Tensor:
    return torch.cat([inputs.floats(chunk) for chunk in inputs.chunks(size)])


@pytest.mark.parametrize(("dtype", "exponents", "mantissas"), [("float16", 31, 1024), ("bfloat16", 255, 128)])
def test_every_finite_float_comes_once_and_in_order(dtype, exponents, mantissas):
    x = all_floats(Inputs.between(-math.inf, math.inf, dtype), 1000)
    assert len(x) == 2 * exponents * mantissas
    assert torch.isfinite(x).all()
    assert (x[1:].double() > x[:-1].double()).sum() == len(x) - 2
    zeros = x[x == 0]
    assert [math.copysign(1, zero) for zero in zeros.tolist()] == [-1, 1]


@pytest.mark.parametrize(("low", "high"), [(-1e30, 1e30), (0.0, 1.0), (0.5, 2.0), (-math.pi, math.pi), (-1.0, 0.0)])
def test_an_interval_ends_at_the_last_floats_within_it(low, high):
    inputs = Inputs.between(low, high, "float32")
    ((first, count),) = inputs.stretches
    least, most = (float(floats(place, 1, "float32")) for place in (first, first + count - 1))
    assert low <= least
    assert most <= high
    assert low == 0 or float(np.nextafter(np.float32(least), np.float32(-np.inf))) < low
    assert high == 0 or float(np.nextafter(np.float32(most), np.float32(np.inf))) > high
    if low <= 0 <= high:
        around = floats(-3, 6, "float32").numpy()
        tiny = np.nextafter(np.float32(0), np.float32(1))
        assert around.tobytes() == np.array([-2 * tiny, -tiny, -0.0, 0.0, tiny, 2 * tiny], "float32").tobytes()
        assert first <= -1 < first + count
        assert first <= 0 < first + count


@pytest.mark.parametrize("done", [0, 1, 999, 1000, 30_000])
def test_chunks_go_on_where_others_ended(done):
    inputs = Inputs.between(-10.0, 10.0, "float32", 2**16)
    whole = all_floats(inputs, 2**20)
    assert len(whole) == inputs.count == len(whole.view(torch.int32).unique())
    parts = [inputs.floats(chunk) for chunk in inputs.chunks(777, done)]
    assert {len(part) for part in parts[:-1]} == {777}
    assert torch.equal(torch.cat(parts), whole[done:])
    assert {-10.0, 10.0} <= set(whole.tolist())
    assert (whole.abs() < 1e-40).sum() > 100


def test_what_is_carried_fills_the_numbers_from_1_to_2():
    u = drawn(floats(-(2**15), 2**16, "float32"))
    assert u.min() >= 1
    assert u.max() < 2
    assert len(u.unique()) > 2**16 * 0.98
    counts = torch.histc(u.double(), 64, 1, 2)
    assert counts.min() > 800
    assert counts.max() < 1250


@pytest.mark.parametrize("job", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_reference_is_the_function(job):
    x = all_floats(job.inputs(500), 2**20)
    with precision(200):
        for point, value in zip(x.tolist(), values(job.expression, x).tolist(), strict=True):
            exact = ball(job.expression, point)
            assert abs(arb(value) - exact) <= 1e-15 * abs(arb(point)).max(arb(1)), point


def test_the_worst_error_is_the_one_that_arb_finds_at_every_input():
    job = with_head(JOBS["own gelu float16 direct"])
    (head,) = job.heads
    (judged,) = walked(job).judged()
    run = head.runner(job, CPU)
    x = all_floats(job.inputs(), 2**20)
    half = x[x.abs() < 8][::7]
    half = torch.cat([half, torch.tensor([judged.at.x], dtype=torch.float16)])
    largest, place = 0.0, math.nan
    unit, tiny = 2.0**-11, 2.0**-25
    with precision(200):
        for point, computed in zip(half.tolist(), run(half, None).tolist(), strict=True):
            f, bound = ball(job.expression, point), arb(head.bound) * max(1.0, abs(point))
            share = float(abs(f - computed) / (bound + unit * (abs(f) + bound) + tiny))
            largest, place = max((largest, place), (share, point))
    assert place == judged.at.x
    assert largest <= judged.share <= largest * (1 + 1e-12)
    assert judged.violations == 0


@pytest.mark.parametrize(
    "name",
    [
        "own gelu float32 direct",
        "own relu float32 powers",
        "own hardswish float32 plain best",
        "gate silu [-64,64] float32 direct u=drawn",
        "table sin [-3.14159,3.14159] float32 direct",
        "table sqrt [0,1] float32 network best",
    ],
)
def test_a_bound_two_per_cent_below_the_worst_error_is_found_out(name, capsys):
    job = with_head(JOBS[name])
    (judged,) = walked(job, 2**13).judged()
    assert 0 < judged.share <= 1
    assert judged.violations == 0
    planted = with_head(job, bound=0.98 * judged.share * job.heads[0].bound)
    outcome = exhaust([planted], "cpu", 2**13, None, math.inf, State())
    assert (outcome.failed, outcome.left) == ({}, 0)
    (row,) = outcome.rows
    assert int(row.violations) > 0
    assert float(row.share) == pytest.approx(1 / 0.98, rel=1e-6)
    assert np.float32(row.at) == np.float32(judged.at.x)
    assert f"VIOLATION: {name}" in capsys.readouterr().out
    barely = with_head(job, bound=1.0001 * judged.share * job.heads[0].bound)
    assert walked(barely, 2**13).judged()[0].violations == 0


def test_more_violations_than_are_kept_are_all_counted():
    job = with_head(JOBS["own gelu float16 direct"], bound=1e-8)
    head = job.heads[0]
    (judged,) = walked(job, size=5000).judged()
    x = all_floats(job.inputs(), 2**20)
    f = values(job.expression, x)
    allowed = 1e-8 * x.double().abs().clamp(min=1) * (1 + 2.0**-11) + 2.0**-11 * f.abs() + 2.0**-25
    above = int(((head.runner(job, CPU)(x, None).double() - f).abs() > allowed).sum())
    # those within the noise of float64 that are not judged one by one count, too
    assert 64 < above <= judged.violations <= above + 5


def test_a_weight_that_moves_and_a_number_that_is_none_are_found_out():
    job = with_head(JOBS["own silu float32 direct"])
    head = job.heads[0].of
    assert isinstance(head, SelfKeyHead)
    moved = replace(head, offsets=head.offsets + np.float32(1e-5))
    assert walked(with_head(job, of=moved), 2**13).judged()[0].violations > 0
    broken = Walk(job, job.inputs(2**13), CPU)
    x = floats(0, 100, "float32")
    broken._chunk([lambda s, _: torch.where(s > 0, s, torch.nan)], x)
    (judged,) = broken.judged()
    assert judged.share == math.inf
    assert judged.violations >= 1


def test_what_was_interrupted_ends_as_what_was_not(tmp_path):
    job = JOBS["own softplus float32 direct"]
    whole = walked(job, 2**14, size=2**20)
    part = Walk(job, job.inputs(2**14), CPU)
    part.go(1000, lambda: part.done < 5000)
    assert 0 < part.done < part.inputs.count
    again = Walk(job, job.inputs(2**14), CPU)
    again.resume(json.loads(json.dumps(part.to_json())))
    again.go(3000, lambda: True)
    assert again.complete
    assert again.judged() == whole.judged()


def test_the_budget_ends_a_run_and_the_state_goes_on(tmp_path, capsys):
    state, output, page = tmp_path / "state.json", tmp_path / "all.csv", tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}old\n{table.END}after\n")
    given = ["--device", "cpu", "--only", "own silu", "own tanh", "--slice", "2^13", "--state", str(state)]
    assert main([*given, "--budget", "0", "--output", str(output)]) == 3
    assert main([*given, "--output", str(output), "--page", str(page)]) == 0
    first = output.read_text()
    capsys.readouterr()
    assert main([*given, "--output", str(output)]) == 0
    assert "6/6" not in capsys.readouterr().out
    assert output.read_text() == first
    rows = table.read(output)
    assert [(row.function, row.ways) for row in rows] == [(f, "direct; plain; powers") for f in ("silu", "tanh")]
    assert not any(row.complete for row in rows)
    assert "old" not in page.read_text()
    assert main([*given[:-2], "--paths", "plain", "--output", str(output)]) == 0
    assert output.read_text() == first
    state.write_text("{}")
    with pytest.raises(AnchorheadError, match="is not a state"):
        main(given)


def test_what_a_table_shows_is_not_tried_again(tmp_path, capsys):
    output = tmp_path / "half.csv"
    given = ["--device", "cpu", "--only", "own softplus", "--dtypes", "bfloat16", "--output", str(output), "--missing"]
    assert main([*given, "--paths", "direct"]) == 0
    assert main([*given, "--list"]) == 0
    left = [
        line.split(":")[0]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("own softplus bfloat16 p")
    ]
    assert len(left) == 5
    assert left[0] == "own softplus bfloat16 powers"
    assert left[1] == "own softplus bfloat16 plain best"
    assert main([*given, "--paths", "direct", "plain"]) == 0
    assert "direct" not in capsys.readouterr().out
    rows = table.read(output)
    assert {row.ways for row in rows} == {"direct; plain"}
    # another bound, another device and inputs left out: each is to be tried
    (job,) = [job for job in JOBS.values() if job.name == "own softplus bfloat16 direct"]

    def left_of(known: list[table.Row], device: str = "CPU") -> list[int]:
        found = table.missing(known, job, device)
        return [] if found is None else [head.anchors for head in found.heads]

    every = [head.anchors for head in job.heads]
    assert left_of(rows) == []
    assert left_of([replace(row, bound="1e-9") if row.anchors == "7" else row for row in rows]) == [7]
    assert left_of([replace(row, inputs="5") for row in rows]) == every
    assert left_of([replace(row, violations="1") for row in rows]) == every
    assert left_of(rows, "another") == every
    with pytest.raises(SystemExit):
        main(["--missing"])


def test_a_way_that_does_not_work_here_is_told_and_the_others_are_tried(capsys):
    job = with_head(JOBS["own silu float32 direct"])
    outcome = exhaust([replace(job, path="triton"), job], "cpu", 2**10, None, math.inf, State())
    assert [row.way for row in outcome.rows] == ["direct"]
    assert list(outcome.failed) == ["own silu float32 triton"]
    assert "needs a CUDA device" in outcome.failed["own silu float32 triton"]
    assert "1/2 own silu float32 triton: does not work here" in capsys.readouterr().out


def test_a_state_of_other_weights_is_not_taken():
    job = with_head(JOBS["own silu float32 direct"])
    other = with_head(job, bound=1e-3)
    state = State()
    for one, most in ((job, 2**10), (other, 2**10), (job, 2**11)):
        (row,) = exhaust([one], "cpu", most, None, math.inf, state).rows
        assert float(row.bound) == one.heads[0].bound
        assert int(row.inputs) == one.inputs(most).count


def test_every_head_of_the_tables_is_in_a_job_of_every_device():
    shipped = {
        "own": [head.bound for one in self_key_frontiers() if one.dtype == "float32" for head in one.heads],
        "gate": [head.bound for one in all_gates() if one.dtype == "float32" for head in one.heads],
        "table": [head.bound for one in frontiers() if one.dtype == "float32" for head in one.heads],
    }
    for device, paths in PATHS.items():
        found = jobs(device)
        assert len({job.name for job in found}) == len(found)
        for kind, ways in paths.items():
            for path in set(ways) - {"powers"}:
                some = [job for job in found if (job.kind, job.path) == (kind, path) and job.u in ("", "drawn")]
                assert sorted(head.bound for job in some for head in job.heads) == sorted(shipped[kind])


def test_the_page_says_which_ways_are_left():
    row = next(row for row in table.read(TABLE) if row.kind == "table")
    tried, left = (replace(row, ways=ways) for ways in ("network; triton", "triton"))
    assert table.untried([tried, tried]) == []
    (said,) = table.untried([tried, left])
    assert f"`network` for 1 of 2 heads of the table ({row.dtype}, {row.device})" in said


def test_the_table_is_about_the_heads_that_ship_and_the_page_shows_it():
    rows = table.read(TABLE)
    assert rows == table.merged(rows)
    shipped = {
        (job.kind, job.function, job.low, job.high, head.anchors): head.bound
        for job in JOBS.values()
        for head in job.heads
    }
    for row in rows:
        key = row.kind, row.function, float(row.low), float(row.high), int(row.anchors)
        assert shipped[key] == float(row.bound)
        assert row.violations == "0"
        assert row.complete
        assert 0 <= float(row.share) <= 1
    assert table.BEGIN + table.summary(rows) + table.END in PAGE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_inputs_in_half_precision(dtype, tmp_path):
    assert main(["--device", "cpu", "--dtypes", dtype, "--output", str(tmp_path / "half.csv")]) == 0
    rows = table.read(tmp_path / "half.csv")
    assert len(rows) == len({row.key for row in rows}) > 200
    assert all(row.complete and int(row.inputs) > 30_000 for row in rows)


@pytest.mark.slow
def test_a_slice_of_float32_for_every_head_and_way():
    assert main(["--device", "cpu", "--slice", "2^14"]) == 0
