/** The only maker of outcomes. */

import type { Outcome } from "../plugin.ts"

type Fields = Omit<Outcome, keyof { [K in keyof Outcome as K extends symbol ? K : never]: unknown }>

export const makeOutcome = (fields: Fields): Outcome => fields as Outcome
