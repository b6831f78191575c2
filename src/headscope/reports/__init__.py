"""Reports: pages made of measures, tables and cases."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.reports.heads_report import HeadsReport as HeadsReport
    from headscope.reports.heads_report import heads as heads
    from headscope.reports.pruning import PruneReport as PruneReport
    from headscope.reports.pruning import prune_report as prune_report
    from headscope.reports.studies import Study as Study
    from headscope.reports.studies import study as study
    from headscope.reports.trust_report import TrustReport as TrustReport
    from headscope.reports.trust_report import trust as trust

__getattr__, __dir__ = public_names(__name__)
