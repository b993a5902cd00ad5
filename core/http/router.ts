/** Which route a method and a path mean. What is spelled ambiguously means none. */

interface Routed {
  readonly method: string
  /** Relative to the base path. */
  readonly path: string
}

export interface Matched<T> {
  readonly route: T
  /** Without a prototype: a parameter never meets `constructor` and its like. */
  readonly params: Record<string, string>
}

export interface Router<T> {
  /**
   * @param path without the query
   */
  match(method: string, path: string): Matched<T> | OtherMethods<T> | undefined
}

/** The path is known, but not with this method. */
export interface OtherMethods<T> {
  /** What `Allow` should say. */
  readonly allow: readonly string[]
  /** One of the routes that are meant by the path. */
  readonly near: T
}

/**
 * - A path matches with and without its last slash, HEAD as GET. Nothing else is normalised: an empty segment or a dot
 *   segment matches nothing, nor does malformed percent-encoding.
 * - `{name}` is one segment, decoded; one that hides a slash (`%2F`) is no match.
 * - `{name+}` is greedy: one segment or more, `%2F` decoded too; literal segments may follow it.
 * - A literal wins over a parameter, a parameter over a greedy one; among these the first that takes the method.
 *
 * @throws RouteError when a path is not well formed, or two routes mean the same requests
 */
export const createRouter = <T extends Routed>(routes: readonly T[], basePath: string): Router<T> => {
  const root = newNode<T>()
  const literals = new Map<string, Leaf<T>>()
  const insert = (route: T): void => {
    const segments = segmentsOf(`${basePath}/${route.path}`)
    const leaf = leafFor(root, segments)
    add(leaf, route, segments)
    if (!segments.some(isParameter)) literals.set(`/${segments.join("/")}`, leaf)
  }
  for (const route of routes) {
    try {
      insert(route)
    } catch (error) {
      throw new RouteError((error as Error).message, route)
    }
  }
  return {
    match(method, path) {
      const bare = path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path
      const verb = method === "HEAD" ? "GET" : method
      // A literal path needs no search, and nothing goes before it.
      const known = literals.get(bare)?.get(verb)?.literal
      return known ?? search(root, verb, bare)
    },
  }
}

/** What is wrong with one of the routes. */
export class RouteError extends Error {
  readonly route: Routed

  constructor(message: string, route: Routed) {
    super(message)
    this.route = route
  }
}

/** The routes of one path, by method. */
type Leaf<T> = Map<string, Entry<T>>

interface Entry<T> {
  readonly route: T
  readonly names: readonly string[]
  /** The ready answer of a path without parameters. */
  readonly literal: Matched<T> | undefined
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>
  parameter: Node<T> | undefined
  /** Greedy parameters by the literal segments behind them, the longest first. */
  greedy: readonly { readonly tail: readonly string[]; readonly leaf: Leaf<T> }[]
  leaf: Leaf<T> | undefined
}

const newNode = <T>(): Node<T> => ({ literals: new Map(), parameter: undefined, greedy: [], leaf: undefined })

// ---- building ----

const segmentsOf = (path: string): string[] => path.split("/").filter(segment => segment !== "")

const isParameter = (segment: string): boolean => segment.startsWith("{")
const isGreedy = (segment: string): boolean => segment.endsWith("+}")

const segmentForm = /^(?:[A-Za-z0-9._~:@!$&'()*,;=-]+|\{[a-z][a-z0-9_]*\+?\})$/

const leafFor = <T>(root: Node<T>, segments: readonly string[]): Leaf<T> => {
  let node = root
  for (const [at, segment] of segments.entries()) {
    if (!segmentForm.test(segment) || isDots(segment)) throw new Error(`Bad segment "${segment}" in a route's path`)
    if (isGreedy(segment)) return greedyLeaf(node, segments.slice(at + 1))
    node = isParameter(segment) ? parameterNode(node) : literalNode(node, segment)
  }
  node.leaf ??= new Map()
  return node.leaf
}

const literalNode = <T>(node: Node<T>, segment: string): Node<T> => {
  const next = node.literals.get(segment) ?? newNode<T>()
  node.literals.set(segment, next)
  return next
}

const parameterNode = <T>(node: Node<T>): Node<T> => {
  node.parameter ??= newNode<T>()
  return node.parameter
}

const greedyLeaf = <T>(node: Node<T>, tail: readonly string[]): Leaf<T> => {
  if (tail.some(isParameter)) throw new Error("Only literal segments may follow a greedy parameter")
  const known = node.greedy.find(other => other.tail.join("/") === tail.join("/"))
  if (known !== undefined) return known.leaf
  const leaf: Leaf<T> = new Map()
  node.greedy = [...node.greedy, { tail, leaf }].sort((one, other) => other.tail.length - one.tail.length)
  return leaf
}

const add = <T extends Routed>(leaf: Leaf<T>, route: T, segments: readonly string[]): void => {
  const other = leaf.get(route.method)
  if (other !== undefined) {
    const paths = [...new Set([route.path, other.route.path])]
    throw new Error(`Two routes for ${route.method} ${paths.join(" and ")}`)
  }
  const names = segments.filter(isParameter).map(segment => segment.replace(/[{}+]/g, ""))
  if (new Set(names).size < names.length) throw new Error(`A parameter is repeated in ${route.path}`)
  leaf.set(route.method, {
    route,
    names,
    literal: names.length === 0 ? { route, params: paramsOf([], []) } : undefined,
  })
}

// ---- matching ----

const search = <T>(root: Node<T>, method: string, bare: string): ReturnType<Router<T>["match"]> => {
  if (bare.charCodeAt(0) !== 0x2f) return undefined
  const segments = bare === "/" ? [] : bare.slice(1).split("/")
  return segments.includes("") ? undefined : new Search<T>(segments, method).from(root)
}

class Search<T> {
  readonly #segments: readonly string[]
  readonly #method: string
  /** Of the parameters on the way to the current node. */
  readonly #values: string[] = []
  /** The methods of leaves that were met and do not take this one. */
  #allow: Set<string> | undefined
  #near: T | undefined

  constructor(segments: readonly string[], method: string) {
    this.#segments = segments
    this.#method = method
  }

  from(root: Node<T>): ReturnType<Router<T>["match"]> {
    return this.#walk(root, 0) ?? (this.#allow && { allow: [...this.#allow], near: this.#near! })
  }

  /** The segments from `at` on, below `node`: as deep as the routes are, whatever the path is. */
  #walk(node: Node<T>, at: number): Matched<T> | undefined {
    if (at === this.#segments.length) return node.leaf && this.#take(node.leaf)
    const segment = this.#segments[at] as string
    const literal = node.literals.get(segment)
    const found = literal && this.#walk(literal, at + 1)
    return found ?? (node.parameter && this.#parameter(node.parameter, segment, at)) ?? this.#greedy(node, at)
  }

  #parameter(node: Node<T>, segment: string, at: number): Matched<T> | undefined {
    const value = decoded(segment, false)
    if (value === undefined) return undefined
    this.#values.push(value)
    const found = this.#walk(node, at + 1)
    this.#values.pop()
    return found
  }

  #greedy(node: Node<T>, at: number): Matched<T> | undefined {
    for (const { tail, leaf } of node.greedy) {
      const end = this.#segments.length - tail.length
      if (end <= at || !tail.every((literal, n) => literal === this.#segments[end + n])) continue
      const value = decoded(this.#segments.slice(at, end).join("/"), true)
      if (value === undefined) continue
      this.#values.push(value)
      const found = this.#take(leaf)
      this.#values.pop()
      if (found !== undefined) return found
    }
    return undefined
  }

  #take(leaf: Leaf<T>): Matched<T> | undefined {
    const entry = leaf.get(this.#method)
    if (entry !== undefined) return entry.literal ?? { route: entry.route, params: paramsOf(entry.names, this.#values) }
    this.#allow ??= new Set()
    this.#near ??= leaf.values().next().value?.route
    for (const known of leaf.keys()) this.#allow.add(known)
    if (leaf.has("GET")) this.#allow.add("HEAD")
    return undefined
  }
}

const paramsOf = (names: readonly string[], values: readonly string[]): Record<string, string> => {
  const params: Record<string, string> = Object.create(null)
  for (let at = 0; at < names.length; at += 1) params[names[at] as string] = values[at] as string
  return params
}

const controls = /[\u0000-\u001f\u007f]/

/** A parameter's value; `undefined` = no match. */
const decoded = (raw: string, slashes: boolean): string | undefined => {
  const value = raw.includes("%") ? decodeOrNothing(raw) : raw
  if (value === undefined || controls.test(value)) return undefined
  if (!value.includes("/")) return isDots(value) ? undefined : value
  return slashes && !value.split("/").some(isDots) ? value : undefined
}

const decodeOrNothing = (raw: string): string | undefined => {
  try {
    return decodeURIComponent(raw)
  } catch {
    return undefined
  }
}

const isDots = (segment: string): boolean => segment === "." || segment === ".."
