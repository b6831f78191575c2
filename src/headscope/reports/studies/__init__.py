"""Studies: checks that papers published, made on any model, with the published numbers beside ours."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.reports.studies.checks import Check as Check
    from headscope.reports.studies.checks import Study as Study
    from headscope.reports.studies.run_study import STUDIES as STUDIES
    from headscope.reports.studies.run_study import study as study

__getattr__, __dir__ = public_names(__name__)
