"""The Python lines that make MindSpore convert checkpoints itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irtool.planning.checkpoints.conversion import Conversion

_OLD, _NEW = "old_checkpoints", "new_checkpoints"


def conversion_lines(
    conversion: Conversion, made_by: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Python for ``mindspore.transform_checkpoints``, of MindSpore 2.2 to 2.10.

    A layout that was read off a dump has no file yet: the lines say where it has to stand.

    Args:
        conversion: the conversion.
        made_by: what writes files that are not there yet, by path.
    """
    makers = made_by or {}
    yield "import mindspore"
    yield ""
    names: list[str] = []
    for file, name in ((conversion.old, "old"), (conversion.new, "new")):
        if file is None:
            names.append("None")
        elif file.path in makers:
            yield f"# {file.path}: {makers[file.path]}"
            names.append(repr(file.path))
        elif file.is_predicted:
            yield f"# {file.path} is a dump: compile with strategy_ckpt_config={{'save_file': …}}"
            names.append(repr(f"{name}_strategy.json"))
        elif len(file.parts) > 1:
            suffix = "json" if file.form == "json" else "ckpt"
            merged = f"{name}_strategy.{suffix}"
            yield f"mindspore.merge_pipeline_strategys({file.path!r}, {merged!r})"
            names.append(repr(merged))
        else:
            names.append(repr(file.parts[0] if file.parts else file.path))
    yield f"# {_OLD}/rank_<r>/*.ckpt, one a rank, becomes {_NEW}/rank_<r>/converted<r>.ckpt"
    yield "mindspore.transform_checkpoints("
    yield f"    {_OLD!r}, {_NEW!r}, 'converted', {names[0]}, {names[1]}"
    yield ")"
