"""Reports: pages made of measures, tables and cases."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.reports.heads_report import HeadsReport as HeadsReport
    from headscope.reports.heads_report import heads as heads
    from headscope.reports.studies import Study as Study
    from headscope.reports.studies import study as study

__getattr__, __dir__ = public_names(__name__)
