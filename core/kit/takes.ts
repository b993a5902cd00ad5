/** Which routes serve a model: what the model step refuses, and what `tollgate explain` tells. */

import type { Model } from "../offer.ts"
import type { Route } from "../plugin.ts"

/** By type and family; of other families what the route offers besides. */
export const takesModel = ({ accepts }: Route, model: Model): boolean =>
  accepts === undefined ||
  (accepts.types.includes(model.type) &&
    (accepts.family === undefined || accepts.family === model.family || accepts.offered?.(model) === true) &&
    accepts.only?.(model) !== false)

/** Some models answer only where their own family is spoken. */
export const isKeptForFamily = ({ accepts }: Route, { rules, family }: Model): boolean =>
  rules.responses_only === true && accepts?.family !== family
