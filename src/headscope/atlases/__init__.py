"""Atlases: the queries and keys of a corpus as clouds of points, a picture of what every head compares."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas as Atlas
    from headscope.atlases.atlas_folder import open_atlas as open_atlas
    from headscope.atlases.attentionviz import import_attentionviz as import_attentionviz
    from headscope.atlases.build_atlas import atlas as atlas
    from headscope.atlases.build_atlas import compile_kernels as compile_kernels
    from headscope.atlases.head_scores import HeadScores as HeadScores
    from headscope.atlases.joint_space import JointSpace as JointSpace
    from headscope.atlases.nearest_neighbours import trustworthiness as trustworthiness
    from headscope.atlases.packed_atlas import pack_atlas as pack_atlas
    from headscope.atlases.packed_atlas import unpack_atlas as unpack_atlas

__getattr__, __dir__ = public_names(__name__)
