/**
 * Models that a relayed request names beside its own: fallbacks, and advisors among the tools. The vendor reads the names
 * as they are written, and what these models use is billed at the prices of the model that was asked for.
 */

import {
  type Body,
  type Bucket,
  type Call,
  GatewayError,
  type Host,
  isEnabled,
  isSet,
  type JsonObject,
  list,
  objectsIn,
  type PriceCard,
  record,
  refuse,
  text,
} from "../../core/index.ts"
import { clientData } from "./foreign.ts"

/** Keys whose presence asks for a closer look; every request holds one `model`. */
export const naming: readonly string[] = ["fallbacks", "model"]

/** @throws GatewayError 404 for a model that this organisation may not use, 400 for one that may cost more */
export const refuseOtherModels = (host: Host, call: Call, body: Body): void => {
  const { found } = body.scan
  if (!found.has("fallbacks") && (found.get("model") ?? 0) < 2) return
  for (const { name, param } of namedIn(body.json())) check(host, call, name, param)
}

interface Named {
  readonly name: string
  readonly param: string
}

const namedIn = (request: JsonObject): readonly Named[] => {
  const { fallbacks, tools, messages } = request
  if (isSet(fallbacks) && !Array.isArray(fallbacks)) {
    throw refuse("fallbacks", "'fallbacks' must name its models: the vendor's own choice has no price here")
  }
  // A conversation may add tools; what else names a model there tells of earlier answers.
  const advisors = [...objectsIn([tools, messages], clientData)].filter(({ name }) => text(name) !== undefined)
  return [...namesOf(list(fallbacks), "fallbacks"), ...namesOf(advisors, "tools")]
}

const namesOf = (named: readonly unknown[], param: string): readonly Named[] =>
  named.flatMap(one => {
    const name = text(record(one).model)
    return name === undefined ? [] : [{ name, param }]
  })

const check = ({ catalog, price }: Host, call: Call, name: string, param: string): void => {
  const { organisation } = call.get("principal").identity
  const model = catalog.find(name)
  const isThere = call.get("plan").every(({ vendor }) =>
    // Another catalog name may be what the vendor calls a third model.
    model?.targets.some(target => target.vendor === vendor && target.model === name),
  )
  if (model === undefined || !isThere || !model.offered || !isEnabled(organisation, model)) {
    throw new GatewayError("model_not_found", `Model '${name}' not found`, { param, reason: "model_not_found" })
  }
  const card = catalog.card(model, organisation.overlay)
  const asked = catalog.card(call.get("model").model, organisation.overlay)
  if (card !== undefined && asked !== undefined && !isDearer(price, card, asked)) return
  throw refuse(
    param,
    `Model '${name}' may cost more than the model of this request, at whose prices it would be billed`,
  )
}

const compared: readonly Bucket[] = ["input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "web_search"]
/** Few enough for the prices of short prompts, many enough to see a fraction of a micro. */
const quantity = 1_000

/** In any bucket, usually or at worst. */
const isDearer = (price: Host["price"], card: PriceCard, than: PriceCard): boolean =>
  card.digest !== than.digest &&
  compared.some(bucket =>
    [false, true].some(dearest => {
      const input = { usage: { [bucket]: quantity }, dearest }
      return price(card, input).micros > price(than, input).micros
    }),
  )
