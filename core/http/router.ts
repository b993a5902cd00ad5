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
   * @returns the route; or, when the path is known but not with this method, what `Allow` should say
   */
  match(method: string, path: string): Matched<T> | { readonly allow: readonly string[] } | undefined
}

/**
 * - A path matches with and without its last slash, HEAD as GET. Nothing else is normalised: an empty segment or a dot
 *   segment matches nothing, nor does malformed percent-encoding.
 * - `{name}` is one segment, decoded; one that hides a slash (`%2F`) is no match.
 * - `{name+}` is greedy: one segment or more, `%2F` decoded too; literal segments may follow it.
 * - A literal wins over a parameter, a parameter over a greedy one; among these the first that takes the method.
 *
 * @throws Error when a path is not well formed, or two routes mean the same requests
 */
export const createRouter = <T extends Routed>(routes: readonly T[], basePath: string): Router<T> => {
  const root = newNode<T>()
  const literals = new Map<string, Leaf<T>>()
  for (const route of routes) {
    const segments = segmentsOf(`${basePath}/${route.path}`)
    const leaf = leafFor(root, segments)
    add(leaf, route, segments)
    if (!segments.some(isParameter)) literals.set(`/${segments.join("/")}`, leaf)
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
  if (other !== undefined) throw new Error(`Two routes for ${route.method} ${route.path} and ${other.route.path}`)
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
  const allow = new Set<string>()
  const segments = bare === "/" ? [] : bare.slice(1).split("/")
  if (segments.some(segment => segment === "")) return undefined
  const found = walk(root, segments, 0, [], method, allow)
  if (found !== undefined) return found
  return allow.size === 0 ? undefined : { allow: [...allow] }
}

/** Segments from `at` on, below `node`; `values` are those of the parameters so far. As deep as the routes are, not the path. */
const walk = <T>(
  node: Node<T>,
  segments: readonly string[],
  at: number,
  values: readonly string[],
  method: string,
  allow: Set<string>,
): Matched<T> | undefined => {
  if (at === segments.length) return node.leaf && take(node.leaf, values, method, allow)
  const segment = segments[at] as string
  const literal = node.literals.get(segment)
  const found = literal && walk(literal, segments, at + 1, values, method, allow)
  if (found !== undefined) return found
  const value = node.parameter && decoded(segment, false)
  const matched = value && walk(node.parameter as Node<T>, segments, at + 1, [...values, value], method, allow)
  return matched || walkGreedy(node, segments, at, values, method, allow)
}

const walkGreedy = <T>(
  node: Node<T>,
  segments: readonly string[],
  at: number,
  values: readonly string[],
  method: string,
  allow: Set<string>,
): Matched<T> | undefined => {
  for (const { tail, leaf } of node.greedy) {
    const end = segments.length - tail.length
    if (end <= at || !tail.every((literal, n) => literal === segments[end + n])) continue
    const value = decoded(segments.slice(at, end).join("/"), true)
    const found = value && take(leaf, [...values, value], method, allow)
    if (found) return found
  }
  return undefined
}

const take = <T>(
  leaf: Leaf<T>,
  values: readonly string[],
  method: string,
  allow: Set<string>,
): Matched<T> | undefined => {
  const entry = leaf.get(method)
  if (entry !== undefined) return entry.literal ?? { route: entry.route, params: paramsOf(entry.names, values) }
  for (const known of leaf.keys()) allow.add(known)
  if (leaf.has("GET")) allow.add("HEAD")
  return undefined
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
