"""All that the page may ask for, in the order in which `web/src/contract.ts` has it."""

from headscope.views.contract.measures import EvidenceProps, ExamplesProps, FoundProps, ReportProps, ScoresProps
from headscope.views.contract.patterns import (
    ImageProps,
    LayerProps,
    MapsProps,
    NeuronProps,
    RolloutProps,
    RowProps,
    SoundProps,
    VectorsProps,
    WindowProps,
)
from headscope.views.contract.runs import (
    ActivationsProps,
    AlignmentProps,
    EffectProps,
    GoldProps,
    RelationProps,
    RelevanceProps,
    TreeProps,
    TrustProps,
    WrittenProps,
)
from headscope.views.contract.trace import ModelProps, SavedProps, TraceProps

PARTS = (
    TraceProps,
    MapsProps,
    LayerProps,
    RowProps,
    WindowProps,
    ScoresProps,
    AlignmentProps,
    RelationProps,
    FoundProps,
    EvidenceProps,
    ReportProps,
    ModelProps,
    SavedProps,
    ActivationsProps,
    ExamplesProps,
    EffectProps,
    WrittenProps,
    NeuronProps,
    VectorsProps,
    ImageProps,
    SoundProps,
    RolloutProps,
    RelevanceProps,
    TrustProps,
    GoldProps,
    TreeProps,
)
