"""What one dump shows of the context that it was compiled under."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, TypeAlias, cast

from irtool.ir.collectives import Collective, collectives
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.group_names import WORLD_GROUPS
from irtool.ir.groups import groups_of, integer_attribute, is_rank, text_attribute
from irtool.ir.items import Parameter
from irtool.ir.operators import COMMUNICATION, POINT_TO_POINT
from irtool.ir.values import Attributes
from irtool.operators.call import Strategy
from irtool.operators.layout import UserLayout
from irtool.sharding.network.strategies import StrategyFormatError, strategy_of, wanted

Pass: TypeAlias = Literal["begin", "end", "validate"]

DATASETS = ("_VirtualDataset", "GetNext")
"""Operators that stand for the dataset."""
FUNCTION_SHARD = "AShardIdentity"
"""What ``mindspore.shard`` puts before a function that it gives layouts."""
LOSS_MEAN = "_VirtualDiv"
"""What divides the gradient of a loss that is computed several times over."""
TELLING = frozenset((*COMMUNICATION, *DATASETS, FUNCTION_SHARD, LOSS_MEAN, "Load"))
"""Operators whose statements say something of the context; a Load says whose weight it is."""

_LISTED = ("group_rank_ids", "group_ranks")
"""Attributes of a transfer that list the ranks of its group."""
_GATHERS = ("AllGather", "_MicroStepAllGather", "_MiniStepAllGather")
_OPTIMIZER = "parallel_optimizer_allgather"


@dataclass(frozen=True, slots=True)
class Gather:
    """Who shares one weight, and whether its gradient is a mean."""

    ranks: tuple[int, ...]
    mean: bool | None


@dataclass(frozen=True, slots=True)
class Borders:
    """What transfers say of the pipeline that they were cut for, where they name stages.

    So do those of cells that are inlined late (``lazy_inline``), of which each end has the number
    of a stage beside its global rank; others have ranks only.

    Attributes:
        size: devices of a stage.
        stages: how many there are; None where not all were seen.
        what: what says so.
    """

    size: int
    stages: int | None
    what: str


@dataclass(frozen=True, eq=False)
class Shown:
    """One dump, or an excerpt of it that holds the :data:`TELLING` statements.

    Attributes:
        dump: what was read.
        kind: after which pass it was taken.
        rank: whose it is; None where nothing says.
        is_whole: whether all statements are there.
    """

    dump: Dump
    kind: Pass
    rank: int | None = None
    is_whole: bool = False

    @property
    def path(self) -> str:
        """The file that the dump was read from."""
        return self.dump.path

    # -- devices -------------------------------------------------------------------------------

    @cached_property
    def communications(self) -> tuple[Collective, ...]:
        """Everything that is communicated, or will be."""
        return collectives(self.dump)

    @cached_property
    def world(self) -> tuple[int, str] | None:
        """How many devices there are, and which group shows it; None where none shows all."""
        exact = groups_of(self.dump).devices
        if exact.is_exact:
            return exact.world, "its group of all devices"
        counts = (listed_world(item.node) for item in self.communications)
        world = max((count for count in counts if count), default=0)
        return (world, "a group of all devices") if world else None

    @cached_property
    def ranks(self) -> frozenset[int]:
        """Ranks that take part in what is communicated."""
        ranks: set[int] = set()
        for item in self.communications:
            ranks.update(item.ranks or ())
            ranks.update(() if item.peer is None else (item.peer,))
        return frozenset(ranks)

    @cached_property
    def possible_ranks(self) -> frozenset[int] | None:
        """The ranks that this dump may be of; None where its groups leave all of them open."""
        able: set[int] | None = None
        for item in self.communications:
            if item.op not in POINT_TO_POINT and item.ranks and len(item.ranks) > 1:
                able = set(item.ranks) if able is None else able & set(item.ranks)
        return None if able is None else frozenset(able - self.peers)

    @cached_property
    def named_rank(self) -> int | None:
        """Whose dump it is, where its transfers name their stage and list the ranks of all."""
        if self.kind == "begin":
            return None  # it still has the transfers of all stages
        ranks: set[int] = set()
        for item in self.communications:
            stage = item.node.attribute("stage")
            if _named_end(item) is None or item.ranks is None or not isinstance(stage, int):
                continue
            if item.ranks_from in _LISTED and 0 <= stage < len(item.ranks):
                ranks.add(item.ranks[stage])
        return ranks.pop() if len(ranks) == 1 else None

    @cached_property
    def peers(self) -> frozenset[int]:
        """Ranks of other stages that this one sends to or receives from."""
        return frozenset(
            item.peer
            for item in self.communications
            if item.origin == "pipeline" and item.peer is not None
        )

    @property
    def has_pipeline(self) -> bool:
        """Whether anything is sent to, or received from, another stage."""
        return any(
            item.op in POINT_TO_POINT and item.origin == "pipeline" for item in self.communications
        )

    @cached_property
    def borders(self) -> Borders | None:
        """Size and number of stages, where transfers name stages; None where they don't.

        A begin dump still has the transfers between all stages, later ones only their own, but
        list the ranks that have the same place in each stage.
        """
        ranks: dict[int, int] = {}
        peers: set[tuple[int, ...]] = set()
        for item in self.communications:
            end = _named_end(item)
            if end is None:
                continue
            ranks[end[0]] = end[1]
            if item.ranks_from in _LISTED and item.ranks is not None:
                peers.add(item.ranks)
        for listed in peers:
            ranks.update(enumerate(listed))
        places = sorted(ranks.items())
        sizes = {
            divmod(rank - places[0][1], stage - places[0][0])
            for stage, rank in places
            if stage > places[0][0]
        }
        if len(sizes) != 1:
            return None
        size, rest = sizes.pop()
        if size < 1 or rest or places[0][1] >= (places[0][0] + 1) * size:
            return None
        if len(peers) == 1:
            return Borders(size, len(peers.pop()), "the ranks with one place in all stages")
        count = places[-1][0] + 1 if self.kind == "begin" and self.is_whole_graph else None
        return Borders(size, count, "stages and ranks that its transfers name")

    @property
    def is_whole_graph(self) -> bool:
        """Whether transfers stand for the borders of all stages: each is sent and received."""
        ops = [item.op for item in self.communications if _named_end(item) is not None]
        return ops.count("Send") == ops.count("Receive") > 0

    @cached_property
    def chunks(self) -> int | None:
        """Into how many chunks the layers of a stage are cut; None where transfers have none."""
        numbers = [
            number
            for item in self.communications
            if item.op in POINT_TO_POINT
            and isinstance(number := item.node.attribute("chunk"), int)
            and not isinstance(number, bool)
        ]
        return max(numbers) + 1 if numbers else None

    @cached_property
    def stage_size(self) -> int | None:
        """Devices of one stage: as transfers name them, else how far the nearest of them reach.

        Where nothing says whose dump it is, each rank that its groups allow is tried: they have to
        agree.
        """
        if not self.peers:
            return None
        if self.borders is not None:
            return self.borders.size
        if self.rank is not None:
            return self.distance_from(self.rank)
        if self.possible_ranks:
            sizes = {self.distance_from(rank) for rank in self.possible_ranks} - {None}
            fitting = [size for size in sizes if size is not None and self._is_within(size)]
            return fitting[0] if len(fitting) == 1 else None
        # The stages before and after this one are two stages apart.
        return (max(self.peers) - min(self.peers)) // 2 or None

    def _is_within(self, size: int) -> bool:
        """Whether stages of a size could hold the groups that tensors are split over."""
        return all(
            len({rank // size for rank in item.ranks}) == 1
            for item in self.communications
            if item.op not in POINT_TO_POINT
            and item.ranks
            and not self.peers.intersection(item.ranks)
        )

    def distance_from(self, rank: int) -> int | None:
        """How far the nearest transfer of a rank reaches."""
        return min((abs(peer - rank) for peer in self.peers if peer != rank), default=None)

    @cached_property
    def target(self) -> str | None:
        """``Ascend`` or ``GPU``, by the name of the group of all devices."""
        for item in self.communications:
            if (item.group or "").startswith(WORLD_GROUPS):
                return "GPU" if (item.group or "").startswith(WORLD_GROUPS[1]) else "Ascend"
        return None

    # -- dataset -------------------------------------------------------------------------------

    @cached_property
    def dataset(self) -> Strategy | tuple[UserLayout, ...] | None:
        """How the dataset is split, as its operator has it; None where it has nothing."""
        for node in self.dump.nodes(where=lambda node: node.op in DATASETS):
            try:
                asked = wanted(node)
                # Behind an operator that is given a tuple of tensors nothing stands, () that is.
                nested = strategy_of("in_strategy", node.attribute("in_strategy"))
            except StrategyFormatError:
                continue
            if asked.in_layout:
                return asked.in_layout
            if asked.strategy or nested:
                return asked.strategy or nested
        return None

    @property
    def dataset_operands(self) -> int | None:
        """Tensors that the dataset's operator takes; None where there is no one such operator."""
        nodes = list(self.dump.nodes(op="_VirtualDataset"))
        return len(nodes[0].operands) if len(nodes) == 1 else None

    @property
    def has_dataset(self) -> bool:
        """Whether an operator stands for the dataset."""
        return any(True for _ in self.dump.nodes(where=lambda node: node.op in DATASETS))

    @cached_property
    def inputs(self) -> Mapping[str, tuple[int, ...]]:
        """Dimensions of the network's inputs, by name: of this rank's slices in later dumps."""
        return {
            one.name: one.type.dimensions
            for one in self.dump.parameters
            if not one.is_weight and one.type is not None and one.type.dimensions is not None
        }

    # -- weights -------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> Mapping[str, Parameter]:
        """Parameters with a value of their own, by name."""
        return {one.name: one for one in self.dump.parameters if one.is_weight}

    @cached_property
    def gathers(self) -> Mapping[str, Gather]:
        """Weights that are cut over their replicas and gathered for use, by name."""
        gathers: dict[str, Gather] = {}
        for item in self.communications:
            node, name = item.node, item.parameter
            if node.op not in _GATHERS or name is None or name in gathers:
                continue
            micro = node.op.startswith("_M")
            if not micro and not (node.instance_name or "").startswith(_OPTIMIZER):
                continue
            size = _group_size(item)
            if size is None or size < 2 or (micro and not item.group):
                continue  # a place holder: the weight is whole
            ranks = item.ranks or tuple(range(size))
            gathers[name] = Gather(ranks, _mean(node))
        return gathers

    @cached_property
    def mirrors(self) -> Mapping[str, int]:
        """Weights whose gradient is summed over replicas, by name: over how many."""
        mirrors: dict[str, int] = {}
        for item in self.communications:
            if item.origin == "mirror" and item.parameter is not None:
                size = _group_size(item)
                if size is not None:
                    mirrors.setdefault(item.parameter, size)
        return mirrors

    @cached_property
    def mean(self) -> bool | None:
        """Whether gradients are averaged; None where nothing says so.

        Only what stands for mirrors before the gradient is made says it for sure.
        """
        flags = {
            _mean(item.node)
            for item in self.communications
            if item.is_virtual or item.node.op.startswith("_M")
        } - {None}
        return flags.pop() if len(flags) == 1 else None

    # -- the rest ------------------------------------------------------------------------------

    @property
    def alltoall(self) -> Node | None:
        """The first AlltoAll that redistributes; None where there is none."""
        for item in self.communications:
            if item.op == "AlltoAll" and item.origin == "redistribution":
                return item.node
        return None

    @property
    def divides_loss(self) -> bool:
        """Whether the gradient of the loss is divided by how often it is computed."""
        return any(True for _ in self.dump.nodes(op=LOSS_MEAN))

    @cached_property
    def micro_batches(self) -> int | None:
        """How many micro-batches there are; None where nothing counts them."""
        if self.is_whole:
            numbers = [node.micro for node in self.dump.nodes() if node.micro is not None]
        else:
            borders = (item.node for item in self.communications if item.origin == "pipeline")
            numbers = [node.micro for node in borders if node.micro is not None]
        return max(numbers) + 1 if numbers else None

    @cached_property
    def fusions(self) -> Mapping[str, tuple[int, ...]]:
        """Fusion numbers of what is communicated, by operator."""
        fusions: dict[str, set[int]] = {}
        for item in self.communications:
            if item.fusion is not None and not item.is_virtual:
                fusions.setdefault(item.op, set()).add(item.fusion)
        return {op: tuple(sorted(numbers)) for op, numbers in sorted(fusions.items())}

    @cached_property
    def searches(self) -> bool | None:
        """Of a begin dump: whether a search set its strategies; None where nothing tells.

        A search leaves its strategy behind the statement of the dataset, which no user writes
        there (behind a Receive stands what another stage has).
        """
        if self.kind != "begin" or not self.has_dataset:
            return None
        datasets = self.dump.nodes(where=lambda node: node.op in DATASETS)
        return any(node.strategy is not None for node in datasets)

    @cached_property
    def shards_functions(self) -> bool:
        """Of a begin dump: whether ``mindspore.shard`` gave a function layouts.

        Where it does, MindSpore compiles with sharding propagation, in semi-auto mode too.
        """
        return any(True for _ in self.dump.nodes(op=FUNCTION_SHARD))

    @cached_property
    def weighs_costs(self) -> bool | None:
        """Of a begin dump that a search went over: whether the search weighed operators' costs.

        ``sharding_propagation`` and ``dynamic_programming`` make an operator's information once
        and mark it; ``recursive_programming`` has a graph of its own. None where nothing tells.
        """
        if not self.searches:
            return None
        datasets = self.dump.nodes(where=lambda node: node.op in DATASETS)
        return any(node.attribute("op_info_created") is not None for node in datasets)


def _named_end(item: Collective) -> tuple[int, int] | None:
    """Stage and global rank of a transfer's other end, where it names both."""
    if item.op not in POINT_TO_POINT or item.origin != "pipeline":
        return None
    attributes = item.node.primitive_attributes or Attributes(())
    stage, rank = (
        ("dest_rank", "dst_global_rank") if item.op == "Send" else ("src_rank", "src_global_rank")
    )
    end = integer_attribute(attributes, stage), integer_attribute(attributes, rank)
    if end[0] is None or end[1] is None or end[0] < 0 or not is_rank(end[1]):
        return None
    return end[0], end[1]


def listed_world(node: Node) -> int | None:
    """The size of the group of all devices, where a statement in it says how many they are.

    Args:
        node: a collective or a transfer.

    Returns:
        None of another group, and where the statement does not say it.
    """
    attributes = node.primitive_attributes or Attributes(())
    group = text_attribute(attributes, "group") or ""
    if not group.startswith(WORLD_GROUPS):
        return None
    if node.op in POINT_TO_POINT:
        listed = attributes.get("group_rank_ids")
        ranks = list(cast("tuple[object, ...]", listed)) if isinstance(listed, tuple | list) else []
        # Some list everybody and some their two ends only.
        return len(ranks) if len(ranks) > 2 and ranks == list(range(len(ranks))) else None
    # Not dev_num, which mirrors have: one process that compiles for several numbers of devices
    # leaves there that of an earlier compilation.
    return integer_attribute(attributes, "rank_size")


def _group_size(item: Collective) -> int | None:
    attributes = item.node.primitive_attributes or Attributes(())
    if item.ranks is not None:
        return len(item.ranks)
    for key in ("rank_size", "dev_num"):
        size = integer_attribute(attributes, key)
        if size is not None:
            return size
    return None


def _mean(node: Node) -> bool | None:
    flag = node.attribute("mean_flag")
    return flag if isinstance(flag, bool) else None
