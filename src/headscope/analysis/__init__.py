"""Measures: what heads do, as Scores."""

from headscope.analysis.antecedents import antecedents as antecedents
from headscope.analysis.averages import rank_correlation as rank_correlation
from headscope.analysis.between import between_sentences as between_sentences
from headscope.analysis.bias import bias as bias
from headscope.analysis.decay import decay as decay
from headscope.analysis.find import find_heads as find_heads
from headscope.analysis.importance import ablation as ablation
from headscope.analysis.importance import gate_importance as gate_importance
from headscope.analysis.likelihood import perplexity as perplexity
from headscope.analysis.measure import MEASURES as MEASURES
from headscope.analysis.measure import measure as measure
from headscope.analysis.measure import measure_all as measure_all
from headscope.analysis.relevance import relevance as relevance
from headscope.analysis.relevance import relevance_scores as relevance_scores
from headscope.analysis.repeats import repeated_tokens as repeated_tokens
