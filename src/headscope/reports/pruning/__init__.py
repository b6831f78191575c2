"""The report of a sweep: what heads cost, which survive, what the survivors do, with the published numbers beside."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.reports.pruning.sweep_report import PruneReport as PruneReport
    from headscope.reports.pruning.sweep_report import prune_report as prune_report

__getattr__, __dir__ = public_names(__name__)
