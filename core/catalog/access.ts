/** Which models an organisation may use: one answer for the lists, the details and the calls. */

import type { Model } from "../offer.ts"
import type { Organisation } from "../state/store.ts"

/** Switched on for the organisation, whether or not the gateway offers it. */
export const isEnabled = ({ models, disabled }: Organisation, { name }: Model): boolean =>
  (models === "all" || models.includes(name)) && !disabled.includes(name)

/** The models that the organisation sees: enabled for it and offered through the gateway, in the catalog's order. */
export const usableModels = (models: ReadonlyMap<string, Model>, organisation: Organisation): readonly Model[] =>
  [...models.values()].filter(model => model.offered && isEnabled(organisation, model))
