"""Faithfulness: whether attention explains an output. The tests, and the rule by which they become a verdict."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.faithfulness.adversary import Adversaries as Adversaries
    from headscope.faithfulness.adversary import AdversaryOptions as AdversaryOptions
    from headscope.faithfulness.adversary import adversaries as adversaries
    from headscope.faithfulness.adversary import epsilon_max as epsilon_max
    from headscope.faithfulness.adversary import reachable_divergence as reachable_divergence
    from headscope.faithfulness.adversary import row_divergence as row_divergence
    from headscope.faithfulness.attention_rows import AttentionRows as AttentionRows
    from headscope.faithfulness.head_tests import HeadTests as HeadTests
    from headscope.faithfulness.kendall_tau import RankAgreement as RankAgreement
    from headscope.faithfulness.kendall_tau import rank_agreement as rank_agreement
    from headscope.faithfulness.output_changes import median_change as median_change
    from headscope.faithfulness.output_changes import output_change as output_change
    from headscope.faithfulness.output_changes import permutation_changes as permutation_changes
    from headscope.faithfulness.output_changes import permutations as permutations
    from headscope.faithfulness.output_changes import replacement_change as replacement_change
    from headscope.faithfulness.quick_set import Badge as Badge
    from headscope.faithfulness.quick_set import quick_check as quick_check
    from headscope.faithfulness.replacements import REPLACEMENTS as REPLACEMENTS
    from headscope.faithfulness.token_erasure import Erasure as Erasure
    from headscope.faithfulness.token_erasure import erasure as erasure
    from headscope.faithfulness.token_importance import gradient_times_input as gradient_times_input
    from headscope.faithfulness.token_importance import leave_one_out as leave_one_out

__getattr__, __dir__ = public_names(__name__)
