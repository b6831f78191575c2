"""One name and one meaning for every measure, role, edit and scale: on the page, in the CLI, in reports and docs.

Plain data: importing it loads nothing else. `scripts/glossary` writes `docs/glossary.md` from it, `scripts/contract`
the page's copy.
"""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.glossary.atlas_scores import ATLAS_SCORE_TERMS as ATLAS_SCORE_TERMS
    from headscope.glossary.atlas_scores import AtlasScoreTerm as AtlasScoreTerm
    from headscope.glossary.edits import EDIT_OPTIONS as EDIT_OPTIONS
    from headscope.glossary.edits import EDIT_TERMS as EDIT_TERMS
    from headscope.glossary.edits import EDITED_PARTS as EDITED_PARTS
    from headscope.glossary.edits import EditTerm as EditTerm
    from headscope.glossary.measures import MEASURE_TERMS as MEASURE_TERMS
    from headscope.glossary.measures import MeasureTerm as MeasureTerm
    from headscope.glossary.measures import current_name as current_name
    from headscope.glossary.measures import group as group
    from headscope.glossary.measures import in_order as in_order
    from headscope.glossary.measures import label as label
    from headscope.glossary.measures import meaning as meaning
    from headscope.glossary.measures import unit as unit
    from headscope.glossary.roles import FAMILIES as FAMILIES
    from headscope.glossary.roles import NO_ROLE as NO_ROLE
    from headscope.glossary.roles import ROLE_TERMS as ROLE_TERMS
    from headscope.glossary.roles import RoleTerm as RoleTerm
    from headscope.glossary.roles import role_family as role_family
    from headscope.glossary.roles import role_short as role_short
    from headscope.glossary.scales import SCALE_TERMS as SCALE_TERMS
    from headscope.glossary.scales import ScaleTerm as ScaleTerm
    from headscope.glossary.words import WORDS as WORDS

__getattr__, __dir__ = public_names(__name__)
