"""How the data of a network lies: dataset strategies, and results of an evaluation."""

from forms import form


def fed(strategy, *operands, phases=("train", "predict")):
    """The sum of some inputs, in ``_VirtualDatasetCell``, with a dataset strategy."""
    context = {"full_batch": False, "dataset_strategy": strategy}
    if strategy == "full_batch":
        context = {"full_batch": True}
    if strategy == "data_parallel":
        context = {"full_batch": False}
    return form(
        "AddN",
        [f"~{one}" for one in operands],
        breadth="few",
        options={"dataset_cell": True, "context": context},
    )


FORMS = [
    fed("full_batch", "ab", "ab"),
    fed("data_parallel", "ab", "ab"),
    fed([[8, 1], [8, 1]], "ab", "ab"),
    fed([[2, 1], [2, 1]], "ab", "ab"),
    fed([[1, 8], [1, 8]], "ab", "ab"),
    fed([[1, 1], [4, 1]], "ab", "ab"),
    fed([[4, 1], [2, 1]], "ab", "ab"),
    fed([[2, 4], [2, 4]], "ab", "ab"),
    fed([[8, 1]], "ab", "ab"),
    fed([[16, 1], [16, 1]], "ab", "ab"),
    fed([[2, 1, 1], [2, 1, 1], [1, 1, 1]], "abc", "abc", "abc"),
]
