"""Studies: checks that papers published, made on any model, with the published numbers beside ours."""

from headscope.reports.studies.checks import Check as Check
from headscope.reports.studies.checks import Study as Study
from headscope.reports.studies.run_study import STUDIES as STUDIES
from headscope.reports.studies.run_study import study as study
