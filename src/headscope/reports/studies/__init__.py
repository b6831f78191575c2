"""Studies: checks that papers published, made on any model, with the published numbers beside ours."""

from headscope.reports.studies.run import STUDIES as STUDIES
from headscope.reports.studies.run import study as study
from headscope.reports.studies.study import Check as Check
from headscope.reports.studies.study import Study as Study
