/** Every view by its scale. Adding one is adding a line here. */

import { mountActivations } from "../views/activations";
import { mountHead } from "../views/headForms";
import { mountModel } from "../views/model";
import { mountNeuron } from "../views/neuron";
import type { Mount } from "../views/view";

export const VIEWS: Record<string, Mount> = {
  model: mountModel,
  head: mountHead,
  neuron: mountNeuron,
  activations: mountActivations,
};
