/** Which model is asked for, whether this organisation and this route may use it, and who may serve it. */

import { hash } from "node:crypto"
import {
  type Body,
  type Call,
  GatewayError,
  type Host,
  invalidInput,
  isEnabled,
  isKeptForFamily,
  type Model,
  type Organisation,
  type Plugin,
  type Principal,
  type Resolved,
  type Route,
  type Target,
  takesModel,
  usableModels,
} from "../core/index.ts"

/** Their models are refused with 403 when they are not enabled, all others with 404 (specification 7). */
const mediaTypes: ReadonlySet<string> = new Set(["image", "video", "audio"])

export default {
  name: "model",
  api: 1,
  setup(host) {
    host.use({
      // A form is read by its own route, which also resolves its model.
      on: route => route.fixed !== undefined || (route.model !== "none" && route.model !== "form"),
      needs: ["principal"],
      provides: ["model", "plan"],
      async run(call, next) {
        const { fixed } = call.route
        if (fixed !== undefined) {
          call.set("model", { asked: fixed.name, model: fixed })
          call.set("plan", fixed.targets)
          return next()
        }
        const { organisation } = call.get("principal").identity
        const resolved = resolve(host, call.route, await askedName(call), organisation)
        call.set("model", resolved)
        const targets = targetsFor(host, call.route, resolved)
        const conversation = hasChoice(host, targets)
          ? conversationOf(call.get("principal"), await call.body())
          : undefined
        if (conversation !== undefined) call.set("conversation", conversation)
        call.set("plan", ordered(targets, conversation === undefined ? host.random : drawsOf(conversation)))
        return next()
      },
    })
  },
} satisfies Plugin

const askedName = async (call: Call): Promise<string> => {
  const { model } = call.route
  if (typeof model === "function") return model(call)
  return model === "query" ? inQuery(call) : inBody((await call.body()).field("model"))
}

const inQuery = (call: Call): string => {
  const name = call.query.get("model")
  if (name === null || name === "") {
    throw new GatewayError("invalid_request", "The query parameter 'model' is required", { param: "model" })
  }
  return name
}

const inBody = (name: unknown): string => {
  if (name === undefined) throw invalidInput(["body", "model"], "Field required", "missing")
  if (typeof name !== "string") throw invalidInput(["body", "model"], "Input should be a valid string", "string_type")
  return name
}

/**
 * The catalog's answer to a name, for one organisation on one route.
 *
 * @throws GatewayError 404 unknown (or not enabled), 403 not enabled (media) or not offered, 400 or 404 another type
 *   or family than the route takes
 */
export const resolve = (
  { catalog }: Pick<Host, "catalog">,
  route: Route,
  asked: string,
  organisation: Organisation,
): Resolved => {
  const model = catalog.find(asked)
  if (model === undefined) throw notFound(route, asked, () => usableModels(catalog.models, organisation))
  if (!isEnabled(organisation, model)) throw notEnabled(route, asked, model)
  if (!model.offered) {
    throw new GatewayError("model_not_offered", `Model '${asked}' is not available through the Gateway API.`)
  }
  if (!takesModel(route, model)) throw otherwise(route, asked)
  if (isKeptForFamily(route, model)) {
    throw new GatewayError("model_not_found_here", `Model '${asked}' not found`, { param: "model" })
  }
  return { asked, model }
}

const takesType = ({ accepts }: Route, { type }: Model): boolean =>
  accepts === undefined || accepts.types.includes(type)

const otherwise = ({ accepts }: Route, asked: string): GatewayError => {
  const { code, message } = accepts!.otherwise
  return new GatewayError(
    code,
    message.replace("'X'", () => `'${asked}'`),
    { param: "model", reason: "model_not_found" },
  )
}

const notEnabled = (route: Route, asked: string, model: Model): GatewayError =>
  mediaTypes.has(model.type) && takesType(route, model)
    ? new GatewayError("model_not_enabled", `Model '${asked}' is not enabled for your tenant.`)
    : notFound(route, asked)

/** @param usable what the organisation may use: on media routes the text names those of the route's types */
const notFound = (route: Route, asked: string, usable: () => readonly Model[] = () => []): GatewayError => {
  const { accepts } = route
  if (accepts?.otherwise.code === "model_not_found") return otherwise(route, asked)
  const isMedia = accepts?.types.some(type => mediaTypes.has(type)) === true
  const known = isMedia ? usable().filter(model => takesType(route, model)) : []
  const list = known.length === 0 ? "" : `. Available models: ${known.map(model => model.name).join(", ")}`
  return new GatewayError("model_not_found", `Model '${asked}' not found${list}`, {
    param: "model",
    reason: "model_not_found",
  })
}

/** A relay needs vendors that speak the client's own wire; a model that is only offered there is translated. */
const targetsFor = (host: Host, route: Route, { asked, model }: Resolved): readonly Target[] => {
  const { accepts } = route
  if (accepts?.wire === undefined || accepts.family !== model.family) return model.targets
  const targets = model.targets.filter(target => host.adapterOf(target.vendor).name === accepts.wire)
  if (targets.length === 0) throw otherwise(route, asked)
  return targets
}

const hasChoice = ({ catalog }: Host, targets: readonly Target[]): boolean =>
  targets.length > 1 || targets.some(({ vendor }) => (catalog.vendors.get(vendor)?.secrets.length ?? 0) > 1)

/** Vendors cache prompts from about 1,000 tokens on; what is shorter than this much text has nothing to lose. */
const beginningBytes = 1024

/** A conversation grows at its end: its calls begin alike, so the beginning of the body is its name. */
export const conversationOf = ({ organisation, member }: Principal, { bytes }: Body): string | undefined =>
  bytes.length < beginningBytes
    ? undefined
    : `${organisation}/${member}/${hash("sha1", bytes.subarray(0, beginningBytes))}`

/** Numbers in [0, 1) that are the same each time for the same conversation. */
const drawsOf = (conversation: string): (() => number) => {
  let at = 0
  return () => Number.parseInt(hash("sha1", `${conversation}/${at++}`).slice(0, 8), 16) / 2 ** 32
}

/**
 * Candidates, the best first: those with a weight drawn by their shares, each without replacement, then those without
 * one in the catalog's order.
 */
export const ordered = (targets: readonly Target[], random: () => number): readonly Target[] => {
  if (targets.length === 1) return targets
  const weighted = targets.filter(target => target.weight !== undefined)
  const order: Target[] = []
  while (weighted.length > 0) order.push(...weighted.splice(drawn(weighted, random()), 1))
  return [...order, ...targets.filter(target => target.weight === undefined)]
}

const drawn = (targets: readonly Target[], chance: number): number => {
  let left = chance * targets.reduce((sum, target) => sum + target.weight!, 0)
  for (const [at, target] of targets.entries()) {
    left -= target.weight!
    if (left < 0) return at
  }
  return targets.length - 1
}
