"""Studies: checks that papers published, on any model or on small ones trained for it, beside the published numbers."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.reports.studies.checks import Check as Check
    from headscope.reports.studies.checks import Study as Study
    from headscope.reports.studies.chunking import chunking_study as chunking_study
    from headscope.reports.studies.exclusive import exclusive_study as exclusive_study
    from headscope.reports.studies.run_study import STUDIES as STUDIES
    from headscope.reports.studies.run_study import study as study
    from headscope.reports.studies.sentiment import sentiment_study as sentiment_study

__getattr__, __dir__ = public_names(__name__)
