/** What a Messages request must hold for a model of another family: types are 422, values 400 (specification 4.4). */

import { invalidInput, isSet, type JsonObject, refuse } from "../../../core/index.ts"

interface Kind {
  readonly is: (value: unknown) => boolean
  /** The problem, in the words of the 422. */
  readonly msg: string
  readonly type: string
}

const aList: Kind = { is: Array.isArray, msg: "Input should be a valid list", type: "list_type" }
const anInteger: Kind = { is: Number.isInteger, msg: "Input should be a valid integer", type: "int_type" }
const aNumber: Kind = { is: Number.isFinite, msg: "Input should be a valid number", type: "float_type" }

interface Rule {
  readonly kind: Kind
  readonly required?: true
  readonly least?: number
  readonly most?: number
}

const rules = {
  messages: { kind: aList, required: true },
  max_tokens: { kind: anInteger, required: true, least: 1 },
  stop_sequences: { kind: aList },
  temperature: { kind: aNumber, least: 0, most: 1 },
  top_p: { kind: aNumber, least: 0, most: 1 },
} as const satisfies Readonly<Record<string, Rule>>

type Field = keyof typeof rules
const allFields = Object.keys(rules) as readonly Field[]

/** @throws GatewayError `validation_failed` (422), `invalid_request` (400), naming the first field at fault */
export const checkValues = (request: JsonObject, fields: readonly Field[] = allFields): void => {
  for (const field of fields) check(field, request[field], rules[field])
}

const check = (field: Field, value: unknown, { kind, required, least, most }: Rule): void => {
  if (required && value === undefined) throw invalidInput(["body", field], "Field required", "missing")
  if (!required && !isSet(value)) return
  if (!kind.is(value)) throw invalidInput(["body", field], kind.msg, kind.type)
  if (least !== undefined && (value as number) < least) throw refuse(field, `'${field}' must be at least ${least}`)
  if (most !== undefined && (value as number) > most) throw refuse(field, `'${field}' must be at most ${most}`)
}
