/**
 * Who is there now, where members come and go with every call.
 *
 * A `Set` or `Map` would do, but for the garbage collector: each time such a table is rebuilt the old one points to the
 * new one, so that one dead table that grew old keeps every later one, and every member that passed through them, until
 * the next full collection. Here a member that left is pointed to by nothing.
 */

/** What a member carries for its roster; one roster a member. */
export interface Listed {
  /** Its place while it is in; only the roster writes it. */
  place?: number | undefined
}

export class Roster<T extends Listed> implements Iterable<T> {
  readonly #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  has(member: T): boolean {
    return member.place !== undefined && this.#members[member.place] === member
  }

  /** @throws Error when it is in another roster */
  add(member: T): void {
    if (this.has(member)) return
    if (member.place !== undefined) throw new Error("a member of one roster was added to another")
    member.place = this.#members.length
    this.#members.push(member)
  }

  find(is: (member: T) => boolean): T | undefined {
    return this.#members.find(is)
  }

  /** False when it was not in. The last member takes its place. */
  delete(member: T): boolean {
    const { place } = member
    if (place === undefined || this.#members[place] !== member) return false
    const last = this.#members.pop() as T
    if (last !== member) {
      this.#members[place] = last
      last.place = place
    }
    member.place = undefined
    return true
  }

  clear(): void {
    for (const member of this.#members) member.place = undefined
    this.#members.length = 0
  }

  /** Those who are there now, but for those who leave meanwhile. */
  *[Symbol.iterator](): Generator<T> {
    for (const member of [...this.#members]) if (this.has(member)) yield member
  }
}
