"""The types of all data that the page receives; `web/src/contract.ts` is written from them.

A **part** is one thing that the page asks for by its key. The keys are the same in the workbench (the tail of a URL),
in a saved page (a dictionary) and in a notebook (a message):

| key | props | arrays |
|---|---|---|
| `trace` | TraceProps | – |
| `maps?size=96` | MapsProps | one per layer, by its site (`L0`): [head, row, column], sqrt bytes, max-pooled |
| `layer/L3?what=pattern` | LayerProps | dense: `weights` [head, query, key]; sparse: `keys`, `weights` […, rank] |
| `layer/L3?what=scores` | LayerProps | dense: `weights` [head, query, key] holds scores, −inf where masked |
| `row/L3?query=5`, `row/L3?key=5` | RowProps | `weights` [head, key] or [head, query]; `scores` likewise where known |
| `window/L3H2?rows=0:512&columns=0:512&size=512` | WindowProps | `weights` [row, column], max-pooled |
| `neuron/L3H2?query=5` | NeuronProps | `query` [query, dim], `dots`, `weights` [query, key], … (`neurons.py`) |
| `vectors/L3H2?of=key&rows=0:512` | VectorsProps | `vectors` [token, dim]; `mean` and `spread` [dim] over all tokens |
| `image/main` | ImageProps | `pixels` [height, width, 1 or 3]: bytes, as the model saw them |
| `sound/encoder` | SoundProps | `envelope` [stretch, 2]: lowest and highest sample; `spectrogram` [band, time]: bytes |
| `rollout/L5` | RolloutProps | `weights` [token, token]: attention followed down to the input, through L5 |
| `experts/L3` | ExpertsProps | `ids`, `weights` [token, rank]: the largest weight first |
| `scores` | ScoresProps | one per method: [head], in the order of the trace's heads; NaN where it says nothing |
| `alignment?minus=ID&by=words` | AlignmentProps | `a:main`, `b:main`: the pair of every token, −1 for none |
| `relation?source=4&target=1&minus=ID` | RelationProps | `a`, `b`: [head, (weight, baseline, depth)] |
| `activations/main` | ActivationsProps | norms, lens, neurons; in saved pages (a server has a task `activations`) |
| `trust` | TrustProps | –; in saved pages (a server has a task `trust`) |
| `gold` | GoldProps | – |
| `tree/L3H2?way=A` | TreeProps | – |
| `report` | ReportProps | one per method: [head]; where known also `low/NAME`, `high/NAME`, `baseline/NAME` |

`layer`, `row` and `window` also take `by=words|sentences` and `hide=` (positions, comma-separated, `stack:position`
where there are several stacks), for inputs too long for the page to do that itself. All but the last two take
`minus=ID`, another run: then they are of the first run minus that one, on the tokens that both have, with signs.

An atlas is a source of its own; its keys:

| key | props | arrays |
|---|---|---|
| `atlas` | AtlasProps | – |
| `examples` | AtlasExamplesProps | `starts:STACK` [example + 1] |
| `tokens?stack=main` | AtlasTokensProps | a column each [token] |
| `maps?method=pca&dims=2&coordinates=scaled&points=2000` | AtlasMapsProps | per head [point, dim]; `rows:STACK`; … |
| `map?head=L3H2&method=pca&dims=2&coordinates=scaled` | AtlasHeadMapProps | `points` [point, dim]; `low`, `step` |
| `columns?head=L3H2`, `columns?name=norm&points=2000` | AtlasColumnsProps | a column each [point]; or one per head |
| `scores` | AtlasScoresProps | one per name [head] |
| `anomalies` | AtlasAnomaliesProps | – |
| `lines?head=L3H2&top=2` | AtlasLinesProps | `keys`, `weights` [query, top] |
| `distances?head=L3H2&pairs=3000` | AtlasDistancesProps | `distance`, `logit`, `query`, `key` [pair] |
| `aggregate?head=L3H2` | AtlasAggregateProps | `weights`, `counts` [position, position] |
| `pattern?head=L3H2&example=5` | AtlasPatternProps | `weights` [query, key]; `value_norm` [key] |
| `hits?text=the&regex=1&ignore_case=1`, `search?…` | AtlasSearchProps | `hits:STACK` |
| `neighbours?head=L3H2&role=query&row=5&k=10` | AtlasNeighboursProps | – |
| `image?example=3` | ImageProps | `pixels` |
"""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.views.contract.atlas import AtlasAggregateProps as AtlasAggregateProps
    from headscope.views.contract.atlas import AtlasAnomaliesProps as AtlasAnomaliesProps
    from headscope.views.contract.atlas import AtlasAnomalyProps as AtlasAnomalyProps
    from headscope.views.contract.atlas import AtlasCloudProps as AtlasCloudProps
    from headscope.views.contract.atlas import AtlasColumnsProps as AtlasColumnsProps
    from headscope.views.contract.atlas import AtlasCorpusProps as AtlasCorpusProps
    from headscope.views.contract.atlas import AtlasDistancesProps as AtlasDistancesProps
    from headscope.views.contract.atlas import AtlasExamplesProps as AtlasExamplesProps
    from headscope.views.contract.atlas import AtlasHeadMapProps as AtlasHeadMapProps
    from headscope.views.contract.atlas import AtlasLinesProps as AtlasLinesProps
    from headscope.views.contract.atlas import AtlasMapProps as AtlasMapProps
    from headscope.views.contract.atlas import AtlasMapsProps as AtlasMapsProps
    from headscope.views.contract.atlas import AtlasNeighboursProps as AtlasNeighboursProps
    from headscope.views.contract.atlas import AtlasPatternProps as AtlasPatternProps
    from headscope.views.contract.atlas import AtlasPlaceProps as AtlasPlaceProps
    from headscope.views.contract.atlas import AtlasProps as AtlasProps
    from headscope.views.contract.atlas import AtlasScoresProps as AtlasScoresProps
    from headscope.views.contract.atlas import AtlasSearchProps as AtlasSearchProps
    from headscope.views.contract.atlas import AtlasStackProps as AtlasStackProps
    from headscope.views.contract.atlas import AtlasTokensProps as AtlasTokensProps
    from headscope.views.contract.atlas import GatheringProps as GatheringProps
    from headscope.views.contract.atlas import NearPointProps as NearPointProps
    from headscope.views.contract.measures import CaseProps as CaseProps
    from headscope.views.contract.measures import ColumnProps as ColumnProps
    from headscope.views.contract.measures import EvidenceProps as EvidenceProps
    from headscope.views.contract.measures import ExampleProps as ExampleProps
    from headscope.views.contract.measures import ExamplesProps as ExamplesProps
    from headscope.views.contract.measures import FindingProps as FindingProps
    from headscope.views.contract.measures import FoundProps as FoundProps
    from headscope.views.contract.measures import MethodProps as MethodProps
    from headscope.views.contract.measures import ReportProps as ReportProps
    from headscope.views.contract.measures import RoleProps as RoleProps
    from headscope.views.contract.measures import ScoresProps as ScoresProps
    from headscope.views.contract.measures import TableProps as TableProps
    from headscope.views.contract.parts import PARTS as PARTS
    from headscope.views.contract.patterns import ExpertsProps as ExpertsProps
    from headscope.views.contract.patterns import ImageAreaProps as ImageAreaProps
    from headscope.views.contract.patterns import ImageProps as ImageProps
    from headscope.views.contract.patterns import LayerProps as LayerProps
    from headscope.views.contract.patterns import MapsProps as MapsProps
    from headscope.views.contract.patterns import NeuronProps as NeuronProps
    from headscope.views.contract.patterns import RolloutProps as RolloutProps
    from headscope.views.contract.patterns import RowProps as RowProps
    from headscope.views.contract.patterns import SoundProps as SoundProps
    from headscope.views.contract.patterns import VectorsProps as VectorsProps
    from headscope.views.contract.patterns import WindowProps as WindowProps
    from headscope.views.contract.runs import ActivationsProps as ActivationsProps
    from headscope.views.contract.runs import AlignmentProps as AlignmentProps
    from headscope.views.contract.runs import BadgeProps as BadgeProps
    from headscope.views.contract.runs import EffectProps as EffectProps
    from headscope.views.contract.runs import GoldProps as GoldProps
    from headscope.views.contract.runs import PairedStackProps as PairedStackProps
    from headscope.views.contract.runs import QuickVerdict as QuickVerdict
    from headscope.views.contract.runs import RankingProps as RankingProps
    from headscope.views.contract.runs import RelationProps as RelationProps
    from headscope.views.contract.runs import RelevanceProps as RelevanceProps
    from headscope.views.contract.runs import TreeProps as TreeProps
    from headscope.views.contract.runs import TrustProps as TrustProps
    from headscope.views.contract.runs import WrittenProps as WrittenProps
    from headscope.views.contract.trace import AnswerProps as AnswerProps
    from headscope.views.contract.trace import CandidateProps as CandidateProps
    from headscope.views.contract.trace import DifferenceProps as DifferenceProps
    from headscope.views.contract.trace import EditedLayerProps as EditedLayerProps
    from headscope.views.contract.trace import EditedWeightsProps as EditedWeightsProps
    from headscope.views.contract.trace import ModelProps as ModelProps
    from headscope.views.contract.trace import OtherLayerProps as OtherLayerProps
    from headscope.views.contract.trace import PresetProps as PresetProps
    from headscope.views.contract.trace import SavedProps as SavedProps
    from headscope.views.contract.trace import SiteProps as SiteProps
    from headscope.views.contract.trace import StackProps as StackProps
    from headscope.views.contract.trace import TokenKind as TokenKind
    from headscope.views.contract.trace import TraceProps as TraceProps

__getattr__, __dir__ = public_names(__name__)
