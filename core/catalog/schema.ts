/** JSON Schema by ajv, with problems in the words of the specification's 422 body. */

import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv"
import formats from "ajv-formats"
import { LRUCache } from "lru-cache"
import type { JsonSchema } from "../offer.ts"

/** One item of the 422 body (specification, section 2). */
export interface Problem {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
  readonly input?: unknown
  readonly ctx?: Readonly<Record<string, unknown>>
}

/** More problems than these help nobody; a hostile body could have as many as it has values. */
const problemsMax = 50

const validator = (options: Options): Ajv => {
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    strictNumbers: true, // 1e400 is read as infinity, which is no number
    verbose: true,
    logger: false,
    addUsedSchema: false,
    ...options,
  })
  formats.default(ajv)
  return ajv
}

/** So many compiled schemas are kept. */
const keptMax = 500

/**
 * Compiles a schema once for each text of it: reloads bring the same ones again and again, and ajv never gives back all
 * that a compilation took.
 */
class Compiler {
  readonly #ajv: Ajv
  readonly #compiled: LRUCache<string, { readonly schema: JsonSchema; readonly validate: ValidateFunction }>

  constructor(options: Options) {
    const ajv = validator(options)
    this.#ajv = ajv
    this.#compiled = new LRUCache({ max: keptMax, dispose: ({ schema }) => void ajv.removeSchema(schema) })
  }

  /** @throws Error when the schema itself is broken */
  compile(schema: JsonSchema): ValidateFunction {
    const text = JSON.stringify(schema)
    const known = this.#compiled.get(text)
    if (known !== undefined) return known.validate
    const validate = this.#ajv.compile(schema)
    this.#compiled.set(text, { schema, validate })
    return validate
  }

  /** What makes a schema unusable, in words. */
  fault(schema: JsonSchema): string | undefined {
    return this.#ajv.validateSchema(schema) === true ? undefined : this.#ajv.errorsText(this.#ajv.errors)
  }
}
const checking = new Compiler({})
const filling = new Compiler({ useDefaults: true })

/**
 * A check of a whole value; an empty list means that it fits.
 *
 * @param place the first step of every `loc`
 * @throws Error when the schema itself is broken
 */
export const compileSchema = (
  schema: JsonSchema,
  place: "body" | "query" = "body",
): ((value: unknown) => readonly Problem[]) => {
  const validate = checking.compile(schema)
  return value => (validate(value) ? [] : problemsOf(validate.errors, [place]))
}

/** For what has no options schema: it takes no options. */
export const noOptions: JsonSchema = { type: "object", additionalProperties: false }

/** Options with the schema's defaults filled in (the value given is not changed), and what is wrong with them. */
export const validateOptions = (
  schema: JsonSchema,
  value: unknown,
): { readonly value: unknown; readonly problems: readonly Problem[] } => {
  const copy: unknown = structuredClone(value)
  const validate = filling.compile(schema)
  const fits = validate(copy)
  return { value: copy, problems: fits ? [] : problemsOf(validate.errors, [], hint) }
}

/** Helps whoever writes options: the known keys, and values that would do. */
const hint = ({ keyword, parentSchema }: ErrorObject): string => {
  const { properties = {}, examples = [] } = (parentSchema ?? {}) as {
    properties?: object
    examples?: readonly unknown[]
  }
  const keys = Object.keys(properties).join(", ")
  if (keyword === "additionalProperties") return keys === "" ? ", none is known" : `, expected one of: ${keys}`
  if (keyword === "type" && keys !== "") return ` of ${keys}`
  return examples.length > 0 ? `, such as ${examples.join(", ")}` : ""
}

/** What makes a schema unusable, in words. */
export const schemaFault = (schema: JsonSchema): string | undefined => checking.fault(schema)

// ---- ajv's errors in the specification's words ----

/** Keywords that only say that something below failed: what failed says it better. */
const summaries = new Set(["if", "not", "propertyNames", "anyOf", "oneOf"])

const problemsOf = (
  errors: ValidateFunction["errors"],
  prefix: readonly string[],
  more: (error: ErrorObject) => string = () => "",
): readonly Problem[] => {
  const first = (errors ?? []).slice(0, problemsMax)
  return first
    .filter(error => !isSummary(error, first))
    .map(error => {
      const problem = problemOf(error, prefix)
      return { ...problem, msg: problem.msg + more(error) }
    })
}

const isSummary = (error: ErrorObject, all: readonly ErrorObject[]): boolean =>
  summaries.has(error.keyword) &&
  all.some(other => other !== error && other.instancePath.startsWith(error.instancePath))

interface Wording {
  readonly type: string
  readonly msg: string
  readonly ctx?: Readonly<Record<string, unknown>>
  /** A field named by the error, below the place of the value. */
  readonly below?: string
}

const problemOf = (error: ErrorObject, prefix: readonly string[]): Problem => {
  const { type, msg, ctx, below } = (wordings[error.keyword] ?? otherwise)(error)
  const loc = [...prefix, ...steps(error.instancePath), ...(below === undefined ? [] : [below])]
  const input = below === undefined || type === "missing" ? error.data : fieldOf(error.data, below)
  return {
    loc,
    msg,
    type,
    ...(input === undefined ? {} : { input: shortened(input) }),
    ...(ctx === undefined ? {} : { ctx }),
  }
}

/** `/messages/0/role`: numbers are indexes of lists, as far as a pointer can tell. */
const steps = (pointer: string): readonly (string | number)[] =>
  pointer
    .split("/")
    .slice(1)
    .map(step => (/^(0|[1-9]\d{0,8})$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~")))

const fieldOf = (data: unknown, name: string): unknown =>
  typeof data === "object" && data !== null && Object.hasOwn(data, name)
    ? (data as Record<string, unknown>)[name]
    : undefined

/** The value is echoed so that the client finds its mistake, never as a way to fill an answer or a log. */
const shortened = (input: unknown): unknown => {
  if (typeof input === "string") return input.length > 200 ? `${input.slice(0, 200)}...` : input
  if (typeof input !== "object" || input === null) return input
  return Array.isArray(input) ? `a list of ${input.length}` : "an object"
}

const typeWords: Readonly<Record<string, readonly [type: string, name: string]>> = {
  string: ["string_type", "string"],
  integer: ["int_type", "integer"],
  number: ["float_type", "number"],
  boolean: ["bool_type", "boolean"],
  array: ["list_type", "list"],
  object: ["dict_type", "object"],
  null: ["none_required", "null"],
}

/** Null stands for a field that was not sent: what may be null as well has its own type's words all the same. */
const typed = ({ params }: ErrorObject): Wording => {
  const types = [params.type as string | string[]].flat()
  const names = types.length > 1 ? types.filter(type => type !== "null") : types
  if (names.length > 1) return { type: "union_type", msg: `Input should be one of: ${names.join(", ")}` }
  const [type, name] = typeWords[names[0]!] ?? ["value_error", names[0]!]
  return { type, msg: `Input should be a valid ${name}` }
}

const literal = (values: readonly unknown[]): Wording => {
  const expected = values.map(value => (typeof value === "string" ? `'${value}'` : String(value))).join(", ")
  return {
    type: "literal_error",
    msg: `Input should be ${values.length === 1 ? "" : "one of "}${expected}`,
    ctx: { expected },
  }
}

const limits: Readonly<Record<string, readonly [type: string, words: string, name: string]>> = {
  minimum: ["greater_than_equal", "greater than or equal to", "ge"],
  maximum: ["less_than_equal", "less than or equal to", "le"],
  exclusiveMinimum: ["greater_than", "greater than", "gt"],
  exclusiveMaximum: ["less_than", "less than", "lt"],
  multipleOf: ["multiple_of", "a multiple of", "multiple_of"],
}

const limited = ({ keyword, params }: ErrorObject): Wording => {
  const [type, words, name] = limits[keyword]!
  const bound: unknown = params.limit ?? params.multipleOf
  return { type, msg: `Input should be ${words} ${bound}`, ctx: { [name]: bound } }
}

const sized =
  (type: string, words: string, unit: string, name: string) =>
  ({ params }: ErrorObject): Wording => ({
    type,
    msg: `Input should have ${words} ${params.limit} ${unit}${params.limit === 1 ? "" : "s"}`,
    ctx: { [name]: params.limit },
  })

const otherwise = (error: ErrorObject): Wording => ({ type: "value_error", msg: error.message ?? "Input is not valid" })

const wordings: Readonly<Record<string, (error: ErrorObject) => Wording>> = {
  required: ({ params }) => ({ type: "missing", msg: "Field required", below: params.missingProperty }),
  dependentRequired: ({ params }) => ({ type: "missing", msg: "Field required", below: params.missingProperty }),
  additionalProperties: ({ params }) => ({
    type: "extra_forbidden",
    msg: "Extra inputs are not permitted",
    below: params.additionalProperty,
  }),
  unevaluatedProperties: ({ params }) => ({
    type: "extra_forbidden",
    msg: "Extra inputs are not permitted",
    below: params.unevaluatedProperty,
  }),
  type: typed,
  enum: ({ params }) => literal(params.allowedValues),
  const: ({ params }) => literal([params.allowedValue]),
  minimum: limited,
  maximum: limited,
  exclusiveMinimum: limited,
  exclusiveMaximum: limited,
  multipleOf: limited,
  minLength: sized("string_too_short", "at least", "character", "min_length"),
  maxLength: sized("string_too_long", "at most", "character", "max_length"),
  minItems: sized("too_short", "at least", "item", "min_length"),
  maxItems: sized("too_long", "at most", "item", "max_length"),
  minProperties: sized("too_short", "at least", "field", "min_length"),
  maxProperties: sized("too_long", "at most", "field", "max_length"),
  pattern: ({ params }) => ({
    type: "string_pattern_mismatch",
    msg: `String should match pattern '${params.pattern}'`,
    ctx: { pattern: params.pattern },
  }),
  format: ({ params }) => ({ type: "value_error", msg: `Input should be a valid ${params.format}` }),
}
