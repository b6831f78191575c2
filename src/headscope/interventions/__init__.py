"""Ways to change a run: one idea a function. Lists of them compose in order, print as Python and save as JSON."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.interventions.calls import canonical as canonical
    from headscope.interventions.calls import parse as parse
    from headscope.interventions.edits import At as At
    from headscope.interventions.edits import Edit as Edit
    from headscope.interventions.heads import gate as gate
    from headscope.interventions.heads import mean_ablate as mean_ablate
    from headscope.interventions.heads import patch as patch
    from headscope.interventions.heads import scale as scale
    from headscope.interventions.heads import silence as silence
    from headscope.interventions.intervention import Intervention as Intervention
    from headscope.interventions.intervention import Stage as Stage
    from headscope.interventions.intervention import edit as edit
    from headscope.interventions.neurons import add_neuron as add_neuron
    from headscope.interventions.neurons import replace_token as replace_token
    from headscope.interventions.neurons import scale_neuron as scale_neuron
    from headscope.interventions.neurons import set_neuron as set_neuron
    from headscope.interventions.patterns import block as block
    from headscope.interventions.patterns import distance_bias as distance_bias
    from headscope.interventions.patterns import replace_pattern as replace_pattern
    from headscope.interventions.patterns import set_row as set_row
    from headscope.interventions.patterns import set_weight as set_weight
    from headscope.interventions.patterns import temperature as temperature
    from headscope.interventions.patterns import uniform as uniform
    from headscope.interventions.store import calls_in as calls_in
    from headscope.interventions.store import load_interventions as load_interventions
    from headscope.interventions.store import payload as payload
    from headscope.interventions.store import save_interventions as save_interventions

__getattr__, __dir__ = public_names(__name__)
