/** A value of a YAML file that knows where it stands. Each reader reports what it expected and returns `undefined`. */

import { durationSchema, parseDuration, parseSize, sizeSchema, timerMaxMs } from "../kit/units.ts"
import type { Path, Position } from "./config.ts"
import { type Problems, problemText } from "./problems.ts"

export type Shape =
  | { readonly kind: "map"; readonly entries: ReadonlyMap<string, Field> }
  | { readonly kind: "list"; readonly items: readonly Field[] }
  | { readonly kind: "value"; readonly value: string | number | boolean | null }

export interface Range {
  readonly least: number
  readonly most: number
}

export class Field {
  readonly path: string
  readonly at: Position
  readonly shape: Shape
  readonly #problems: Problems

  constructor(path: string, at: Position, shape: Shape, problems: Problems) {
    this.path = path
    this.at = at
    this.shape = shape
    this.#problems = problems
  }

  /** Reports what is wrong here. Nothing is returned, so that a reader can end with it. */
  problem(message: string): undefined {
    this.#problems.add(this.at, this.path, message)
  }

  expected(what: string): undefined {
    const { shape } = this
    const found = shape.kind === "value" ? JSON.stringify(shape.value)?.slice(0, 60) : `a ${shape.kind}`
    return this.problem(`expected ${what}, found ${found}`)
  }

  /** An object's fields; with `known`, any other name is a problem. */
  fields(known?: readonly string[]): ReadonlyMap<string, Field> {
    if (this.shape.kind !== "map") {
      this.expected("an object")
      return new Map()
    }
    for (const [name, field] of this.shape.entries) {
      if (known?.includes(name) === false) field.problem(`unknown key, expected one of: ${known.join(", ")}`)
    }
    return this.shape.entries
  }

  list(): readonly Field[] {
    if (this.shape.kind === "list") return this.shape.items
    this.expected("a list")
    return []
  }

  string(what = "a text", pattern?: RegExp): string | undefined {
    const value = this.#value()
    if (typeof value === "string" && value !== "" && (pattern?.test(value) ?? true)) return value
    return this.expected(what)
  }

  /** A text, or a number or truth value as it reads: parameter values, vendor names of models. */
  word(what = "a text"): string | undefined {
    const value = this.#value()
    return value === null || value === undefined || value === "" ? this.expected(what) : String(value)
  }

  strings(what = "a text", pattern?: RegExp): readonly string[] {
    return this.list().flatMap(item => item.string(what, pattern) ?? [])
  }

  boolean(): boolean | undefined {
    const value = this.#value()
    return typeof value === "boolean" ? value : this.expected("true or false")
  }

  number(range: Range): number | undefined {
    const value = this.#value()
    const fits = typeof value === "number" && value >= range.least && value <= range.most
    return fits ? value : this.expected(`a number from ${range.least} to ${range.most}`)
  }

  integer(range: Range): number | undefined {
    const value = this.#value()
    const fits = Number.isSafeInteger(value) && (value as number) >= range.least && (value as number) <= range.most
    return fits ? (value as number) : this.expected(`a whole number from ${range.least} to ${range.most}`)
  }

  choice<const Word extends string>(words: readonly Word[]): Word | undefined {
    const value = this.#value()
    return words.find(word => word === value) ?? this.expected(words.join(" or "))
  }

  /** `400ms`, `5s`, `10m`, `1h`, `7d`, in milliseconds. */
  duration(): number | undefined {
    const value = parsed(parseDuration, this.#value())
    if (value !== undefined && value <= timerMaxMs) return value
    return this.expected(
      this.#reads(durationSchema) ? "a duration above 0 and below 25d" : "a duration such as 400ms, 5s, 10m or 1h",
    )
  }

  /** `8MB`, in bytes; MB is 1024 * 1024. */
  size(): number | undefined {
    const value = parsed(parseSize, this.#value())
    if (value !== undefined && Number.isSafeInteger(value)) return value
    return this.expected(this.#reads(sizeSchema) ? "a size of one byte or more" : "a size such as 64KB, 8MB or 1GB")
  }

  /** Plain data, as JSON would hold it. */
  plain(): unknown {
    const { shape } = this
    if (shape.kind === "value") return shape.value
    if (shape.kind === "list") return shape.items.map(item => item.plain())
    return Object.fromEntries([...shape.entries].map(([name, field]) => [name, field.plain()]))
  }

  /** The text of a problem at a place below this one, or at the nearest place around it that is written down. */
  problemAt(path: Path, message: string): string {
    let nearest: Field = this
    for (const step of path) nearest = nearest.#step(step) ?? nearest
    return problemText(nearest.at, [this.path, ...path].filter(step => step !== "").join("."), message)
  }

  #step(step: string | number): Field | undefined {
    if (this.shape.kind === "map") return this.shape.entries.get(String(step))
    return this.shape.kind === "list" ? this.shape.items[Number(step)] : undefined
  }

  /** The form is right, the amount is out of range. */
  #reads({ pattern }: { readonly pattern: string }): boolean {
    const value = this.#value()
    return typeof value === "string" && new RegExp(pattern).test(value)
  }

  #value(): string | number | boolean | null | undefined {
    return this.shape.kind === "value" ? this.shape.value : undefined
  }
}

const parsed = (parse: (text: string) => number, value: unknown): number | undefined => {
  try {
    return typeof value === "string" ? parse(value) : undefined
  } catch {
    return undefined
  }
}

/** A required field: its absence is a problem of the object around it. */
export const required = (around: Field, fields: ReadonlyMap<string, Field>, name: string): Field | undefined =>
  fields.get(name) ?? (around.shape.kind === "map" ? around.problem(`${name} is missing`) : undefined)
