/** The only maker of outcomes. */

import type { Outcome } from "../plugin.ts"

export type OutcomeFields = Omit<Outcome, keyof { [K in keyof Outcome as K extends symbol ? K : never]: unknown }>

export const makeOutcome = (fields: OutcomeFields): Outcome => fields as Outcome
