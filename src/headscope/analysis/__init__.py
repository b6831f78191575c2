"""Measures: what heads do, as Scores."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.analysis.attribution.effect import Effect as Effect
    from headscope.analysis.attribution.effect import effect as effect
    from headscope.analysis.attribution.importance import ablation as ablation
    from headscope.analysis.attribution.importance import gate_importance as gate_importance
    from headscope.analysis.attribution.likelihood import perplexity as perplexity
    from headscope.analysis.attribution.pixel_relevance import PixelRelevance as PixelRelevance
    from headscope.analysis.attribution.pixel_relevance import pixel_relevance as pixel_relevance
    from headscope.analysis.attribution.relevance import relevance as relevance
    from headscope.analysis.attribution.relevance import relevance_scores as relevance_scores
    from headscope.analysis.measures.copying import copying as copying
    from headscope.analysis.measures.corpus_measures import streaming as streaming
    from headscope.analysis.measures.measure import MEASURES as MEASURES
    from headscope.analysis.measures.measure import measure as measure
    from headscope.analysis.measures.measure import measure_all as measure_all
    from headscope.analysis.measures.repeated_tokens import repeated_tokens as repeated_tokens
    from headscope.analysis.search.examples import examples as examples
    from headscope.analysis.search.find_heads import find_heads as find_heads
    from headscope.analysis.statistics import rank_correlation as rank_correlation
    from headscope.analysis.usecases.antecedents import antecedents as antecedents
    from headscope.analysis.usecases.bias import bias as bias
    from headscope.analysis.usecases.distance_decay import decay as decay
    from headscope.analysis.usecases.pronoun_sentences import Schema as Schema
    from headscope.analysis.usecases.sentence_pairs import between_sentences as between_sentences

__getattr__, __dir__ = public_names(__name__)
