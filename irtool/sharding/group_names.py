"""Names of communication groups; they belong to the model, see :mod:`irtool.ir.group_names`."""

from irtool.ir.group_names import WORLD_GROUPS, decode, group_name, text_hash

__all__ = ["WORLD_GROUPS", "decode", "group_name", "text_hash"]
