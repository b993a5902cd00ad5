/** Charges what a gateway could not write before it ended: the lines of its log say all that a row needs. */
import { open } from "node:fs/promises"
import { compileSchema } from "../catalog/schema.ts"
import type { Pending } from "../money/persistence.ts"
import type { ChargeAnswer, ChargeRequest, MemberRef, Store } from "../state/store.ts"
import { CliError } from "./command.ts"
import { existing } from "./store.ts"

/** What became of one line. */
export interface Settled extends ChargeAnswer, MemberRef {
  readonly id: string
}

const text = { type: "string", minLength: 1 } as const
/** What a store can count: the rest would be refused when the lines before it are charged, or make its sums infinite. */
const counted = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
const known = compileSchema({
  type: "object",
  required: ["id", "organisation", "member", "micros", "detail"],
  properties: {
    id: text,
    organisation: text,
    member: text,
    micros: { type: "integer", ...counted },
    detail: {
      type: "object",
      required: ["key", "model", "kind", "route", "priceDigest", "usage", "source"],
      properties: {
        key: text,
        model: text,
        kind: text,
        route: text,
        priceDigest: text,
        usage: { type: "object", additionalProperties: { type: "number", ...counted } },
        source: text,
      },
    },
  },
})

/**
 * Every line is read before the first is charged. A charge that is there already moves nothing.
 *
 * @throws CliError when the file cannot be read, or a line names what is not there
 */
export const settleLog = async (store: Store, path: string): Promise<readonly Settled[]> => {
  const charges = await chargesIn(path)
  for (const { member, line } of charges) await existing(store, member, `line ${line}: `)
  const settled: Settled[] = []
  for (const { line: _, ...request } of charges) {
    settled.push({ id: request.id, ...request.member, ...(await store.accounts.settle(request)) })
  }
  return settled
}

interface Line extends ChargeRequest {
  readonly line: number
}

const chargesIn = async (path: string): Promise<readonly Line[]> => {
  const charges: Line[] = []
  let line = 0
  for await (const words of linesOf(path)) {
    line += 1
    const entry = jsonOf(words)
    if (entry?.unconfirmed === "charge") charges.push(chargeOf(entry, line))
  }
  return charges
}

async function* linesOf(path: string): AsyncGenerator<string> {
  try {
    const file = await open(path)
    yield* file.readLines()
  } catch (cause) {
    throw new CliError(`cannot read ${path}: ${(cause as Error).message}`)
  }
}

/** Of all that a log may hold, the lines that are ours are JSON objects. */
const jsonOf = (words: string): Partial<Pending> | undefined => {
  try {
    const value: unknown = JSON.parse(words)
    return typeof value === "object" && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const chargeOf = (entry: Partial<Pending>, line: number): Line => {
  const [problem] = known(entry)
  if (problem !== undefined) throw new CliError(`line ${line}: ${problem.loc.slice(1).join(".")}: ${problem.msg}`)
  const { id, organisation, member, micros, detail } = entry as Required<Pending>
  const { key, model, kind, route, priceDigest, usage, source } = detail
  return {
    id,
    member: { organisation, member },
    micros,
    detail: { key, model, kind, route, priceDigest, usage, source },
    line,
  }
}
