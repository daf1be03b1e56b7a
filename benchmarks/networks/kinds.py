"""The kinds of random networks: by name what draws one."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import by_hand
import contexts
import formers
import others
import tied
import transformers
import zoo
from drawing import Drawn

KINDS: dict[str, Callable[[random.Random], Drawn]] = {
    "decoder": partial(transformers.transformer, kind="decoder"),
    "moe": partial(transformers.transformer, kind="moe"),
    "mla": partial(transformers.transformer, kind="mla"),
    "ring": partial(transformers.transformer, kind="ring"),
    "layouts": partial(transformers.transformer, kind="layouts"),
    "images": others.images,
    "recurrent": others.recurrent,
    "tables": others.tables,
    "functional": others.functional,
    "unknown": others.unknown,
    "morph": others.morph,
    "zoo": zoo.zoo,
    "zoo2": zoo.zoo,
    "former": formers.former,
    "former2": formers.former,
    "pipeline": lambda draw: transformers.transformer(
        draw, "decoder", stages=draw.choice((2, 2, 4))
    ),
    "tied": tied.tied,
}
"""What a seed draws, in turn; before ``tied`` was one of them a seed drew the others."""

BY_NAME: dict[str, Callable[[random.Random], Drawn]] = {
    **KINDS,
    "contexts": contexts.contexts,
    **by_hand.BY_HAND,
}
"""Those, and what is drawn only where it is named."""
