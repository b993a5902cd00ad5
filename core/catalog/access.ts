/** Which models an organisation may use: one answer for the lists, the details and the calls. */

import type { Model } from "../offer.ts"
import type { Organisation } from "../state/store.ts"

type Names = Pick<Model, "name" | "aliases">

/** Is one of the names the model's, current or old? Stores keep the name that it had when it was chosen. */
export const isAmong = (list: readonly string[], { name, aliases }: Names): boolean =>
  list.length > 0 && (list.includes(name) || aliases.some(alias => list.includes(alias)))

/** Switched on for the organisation, whether or not the gateway offers it. */
export const isEnabled = ({ models, disabled }: Organisation, model: Names): boolean =>
  (models === "all" || isAmong(models, model)) && !isAmong(disabled, model)

/** The models that the organisation sees: enabled for it and offered through the gateway, in the catalog's order. */
export const usableModels = (models: ReadonlyMap<string, Model>, organisation: Organisation): readonly Model[] =>
  [...models.values()].filter(model => model.offered && isEnabled(organisation, model))
