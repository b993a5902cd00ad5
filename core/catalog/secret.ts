/** A credential: `{ env: NAME }` or `{ file: path }`, never written into the YAML itself. */

import { readFileSync } from "node:fs"
import { basename, dirname, resolve } from "node:path"
import { inspect } from "node:util"
import type { Secret } from "../offer.ts"
import type { Field } from "./field.ts"

/** Where secrets come from, and what the deployment allows. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Literal secrets are allowed. */
  readonly sandbox: boolean
  /** A missing secret gets a placeholder. */
  readonly mayBeAbsent: boolean
  /** Files that were read are added. */
  readonly files: Set<string>
}

/** Printed, logged or written as JSON it says `[secret]`; only `reveal` gives the value. */
class HiddenSecret implements Secret {
  readonly name: string
  readonly #value: string

  constructor(name: string, value: string) {
    this.name = name
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return "[secret]"
  }

  toJSON(): string {
    return "[secret]"
  }

  [inspect.custom](): string {
    return "[secret]"
  }
}

export const hidden = (name: string, value: string): Secret => new HiddenSecret(name, value)

/** What a simulator is called with. No plain word: an error text that holds the secret is taken for a leak. */
export const sandboxSecret = "sandbox-takes-any-key"

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** A header field cannot carry line ends or control bytes, and a stray one is a copying mistake. */
const valuePattern = /^[\x20-\x7e]+$/

export const readSecret = (field: Field, source: SecretSource): Secret | undefined => {
  if (field.shape.kind === "value") return literal(field, source)
  const fields = field.fields(["env", "file", "name"])
  const name = fields.get("name")?.string("a short name", namePattern)
  const [env, file] = [fields.get("env"), fields.get("file")]
  if ((env === undefined) === (file === undefined)) return field.problem("expected either env or file")
  const found = env === undefined ? fromFile(file!, source) : fromEnvironment(env, source)
  return found === undefined ? undefined : hidden(name ?? found.name, found.value)
}

const literal = (field: Field, source: SecretSource): Secret | undefined => {
  if (!source.sandbox) return field.problem("expected { env: NAME } or { file: path }; a secret is never written here")
  const value = field.string("a secret")
  return value === undefined ? undefined : hidden("literal", value)
}

interface Found {
  readonly name: string
  readonly value: string
}

const fromEnvironment = (field: Field, source: SecretSource): Found | undefined => {
  const name = field.string("the name of an environment variable", /^[A-Za-z_][A-Za-z0-9_]*$/)
  if (name === undefined) return undefined
  return usable(
    field,
    name,
    Object.hasOwn(source.env, name) ? source.env[name] : undefined,
    source,
    `environment variable ${name}`,
  )
}

const fromFile = (field: Field, source: SecretSource): Found | undefined => {
  const written = field.string("the path of a file")
  if (written === undefined) return undefined
  const path = resolve(dirname(field.at.file), written)
  source.files.add(path)
  return usable(field, basename(path), textOf(path), source, `file ${written}`)
}

const usable = (
  field: Field,
  name: string,
  text: string | undefined,
  source: SecretSource,
  where: string,
): Found | undefined => {
  const value = text?.trim() ?? ""
  if (value === "")
    return source.mayBeAbsent
      ? { name, value: sandboxSecret }
      : field.problem(`expected a secret, and ${where} is missing or empty`)
  return valuePattern.test(value) ? { name, value } : field.problem(`expected one line of plain text in ${where}`)
}

const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}
