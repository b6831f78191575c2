"""Reports: pages made of measures, tables and cases."""

from headscope.reports.heads_report import HeadsReport as HeadsReport
from headscope.reports.heads_report import heads as heads
from headscope.reports.studies import Study as Study
from headscope.reports.studies import study as study
