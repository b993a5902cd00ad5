/** Arguments of a tool call that arrive in pieces, each with the path to its place. */

import { isExactNumber, type JsonObject, unreadable } from "../../../../core/index.ts"
import { text } from "../../common/json.ts"

/** Without a prototype, so that a path can name nothing that is not there. */
type Place = Record<string, unknown> | unknown[]

const object = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>

const depthMax = 64

export class PartialArguments {
  readonly #root = object()
  /** The path whose text goes on in the next piece. */
  #open: string | undefined

  constructor(args: JsonObject = {}) {
    Object.assign(this.#root, args)
  }

  /** @throws GatewayError (502) for a path that cannot be followed */
  add(piece: JsonObject): void {
    const path = text(piece.jsonPath) ?? ""
    const keys = keysOf(path)
    const last = keys.pop()
    if (last === undefined) throw unreadable()
    let place: Place = this.#root
    for (const [at, key] of keys.entries()) place = inner(place, key, keys[at + 1] ?? last)
    const before = this.#open === path ? read(place, last) : undefined
    write(place, last, typeof before === "string" ? before + (piece.stringValue ?? "") : valueIn(piece))
    this.#open = piece.willContinue === true ? path : undefined
  }

  toString(): string {
    return JSON.stringify(this.#root)
  }
}

const step = /\.([^.[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y

/** `$.recipe.steps[0]`: names, indexes, and quoted names (RFC 9535, as far as this vendor uses it). */
const keysOf = (path: string): (string | number)[] => {
  const keys: (string | number)[] = []
  if (!path.startsWith("$")) throw unreadable()
  for (let at = 1; at < path.length; at = step.lastIndex) {
    step.lastIndex = at
    const found = step.exec(path)
    if (found === null || keys.length === depthMax) throw unreadable()
    const [, name, index, single, double] = found
    keys.push(index === undefined ? (name ?? (single ?? double ?? "").replace(/\\(.)/g, "$1")) : Number(index))
  }
  return keys
}

const valueIn = ({ stringValue, numberValue, boolValue }: JsonObject): unknown =>
  stringValue ?? numberValue ?? boolValue ?? null

const read = (place: Place, key: string | number): unknown =>
  Array.isArray(place) ? place[Number(key)] : Object.hasOwn(place, key) ? place[key] : undefined

/** A list grows by one at a time: a path cannot ask for a million holes. */
const write = (place: Place, key: string | number, value: unknown): void => {
  if (!Array.isArray(place)) place[key] = value
  else if (typeof key === "number" && key <= place.length) place[key] = value
  else throw unreadable()
}

/** The object or list below `key`, made when it is not there yet; what follows tells which. */
const inner = (place: Place, key: string | number, next: string | number): Place => {
  const found = read(place, key)
  if (typeof found === "object" && found !== null && !isExactNumber(found)) return found as Place
  const made: Place = typeof next === "number" ? [] : object()
  write(place, key, made)
  return made
}
