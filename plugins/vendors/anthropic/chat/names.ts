/** Names of tools: the vendor takes letters, digits, `_` and `-` only; others travel under an alias and come back. */

const accepted = /^[a-zA-Z0-9_-]{1,64}$/
const nameMax = 64

export class ToolNames {
  readonly #aliases = new Map<string, string>()
  readonly #taken = new Set<string>()

  /** @param names all names of the request, so that no alias takes the place of a name that can stay */
  constructor(names: Iterable<string>) {
    const all = new Set(names)
    for (const name of all) if (accepted.test(name)) this.#taken.add(name)
    for (const name of all) if (!accepted.test(name)) this.#aliases.set(name, this.unused(name))
  }

  /** The name as it is sent. */
  sent(name: string): string {
    return this.#aliases.get(name) ?? name
  }

  /** Claims a name that nothing else in the request bears, as like the wanted one as can be. */
  unused(wanted: string): string {
    const clean = wanted.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, nameMax) || "tool"
    let name = clean
    for (let count = 2; this.#taken.has(name); count++) {
      const suffix = `_${count}`
      name = clean.slice(0, nameMax - suffix.length) + suffix
    }
    this.#taken.add(name)
    return name
  }

  /** The client's name by each alias. */
  get originals(): ReadonlyMap<string, string> {
    return new Map([...this.#aliases].map(([name, alias]) => [alias, name]))
  }
}
