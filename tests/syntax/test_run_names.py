"""Names of the files that MindSpore leaves, and which of them are dumps."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.syntax.run.names import is_dump, parse_base, parse_name, split_number

TINY = "# IR entry: @main_1\n# Total subgraphs: 1\n\n# Total params: 0\n\n"


def put(folder: Path, *names: str, text: str = TINY) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected", "kind"),
    [
        ("20_validate_0074.ir", (74, "validate", 20), "stage"),
        ("21_validate_12345.ir.gz", (12345, "validate", 21), "stage"),
        ("06_parallel-infer-symbol_0009.ir", (9, "parallel-infer-symbol", 6), "stage"),
        ("20_validate.ir", (None, "validate", 20), "stage"),
        ("validate.ir", (None, "validate", None), "stage"),
        ("step_parallel_begin_0018.ir", (18, "step_parallel_begin", None), "parallel"),
        ("step_parallel_begin_18.ir", (18, "step_parallel_begin", None), "parallel"),
        ("step_parallel_begin.ir", (None, "step_parallel_begin", None), "parallel"),
        ("0018_step_parallel_begin.ir", (18, "step_parallel_begin", None), "parallel"),
        ("12_step_parallel_begin.ir", (12, "step_parallel_begin", None), "parallel"),
        ("0031_14_validate.ir", (31, "validate", 14), "stage"),
        (
            "opt_pass_40_grouped_pairwise_exchange_alltoall_0498.ir",
            (498, "grouped_pairwise_exchange_alltoall", None),
            "pass",
        ),
        ("opt_substep_opt_a_r1_j0_14_shard_inline_0096.ir", (96, "shard_inline", None), "substep"),
        ("opt_a.r1.a_2.inline_12.ir", (12, "a_2.inline", None), "substep"),
        (
            "hwopt_pm_7_print_value_type_0302.ir",
            (302, "hwopt_pm_7_print_value_type", None),
            "backend",
        ),
        ("graph_build_0_0123.ir", (123, "graph_build_0", None), "kernel"),
        ("graph_build_0.ir", (None, "graph_build_0", None), "kernel"),
        ("trace_code_graph_0124", (124, "trace_code_graph", None), "kernel"),
        ("merge_send_receive_0018.ir", (18, "merge_send_receive", None), "pass"),
        ("analyze_fail.ir", (None, "analyze_fail", None), "failure"),
        ("gpt_24_layers_validate.ir.xz", (None, "validate", None), "stage"),
        ("resnet__20_validate_0074.ir", (74, "validate", 20), "stage"),
        ("net__verbose_ir_files__hwopt_x_0074.ir", (74, "hwopt_x", None), "backend"),
        ("r2.3.mindir_11.ir", (None, "r2.3.mindir_11", None), "other"),
    ],
)
def test_names(name: str, expected: tuple[int | None, str, int | None], kind: str) -> None:
    assert parse_name(name) == expected
    assert parse_base(split_number(name)[1])[2] == kind


def test_debug_names_in_pass_names_are_no_prefix() -> None:
    name = "before_lift_249_13___main___L_construct_1266_0024.ir"
    assert parse_name(name) == (24, "before_lift_249_13___main___L_construct_1266", None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("20_validate_0074.ir", True),
        ("20_validate_0074.ir.xz", True),
        ("trace_code_graph_0124", True),
        ("20_validate_0074.dot", False),
        ("analyze_fail.dat", False),
        ("ms_output_trace_code_graph_0.pb", False),
        ("final_actor_set_kernel_graph_0.ir", False),
        ("case.json", False),
    ],
)
def test_what_counts_as_a_dump_in_a_folder(name: str, expected: bool) -> None:
    assert is_dump(name) is expected
