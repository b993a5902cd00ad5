/** The native generate-content family: generate, stream, count, and its own model list, below each of its prefixes. */

import {
  type Body,
  type Call,
  type Demand,
  type Draft,
  demandOf,
  type Host,
  isObject,
  type Plugin,
  refuseStoredIds,
  usableModels,
} from "../../core/index.ts"
import { storedIds } from "./foreign.ts"
import { family, generateModels, pageOf } from "./list.ts"

const methods = ["generateContent", "streamGenerateContent", "countTokens"] as const
type MethodName = (typeof methods)[number]

/** The specification names the first; the vendor's own client asks for the second unless told otherwise. */
const versions = ["v1beta", "v1"] as const
type Version = (typeof versions)[number]

export default {
  name: "generate",
  api: 1,
  kind: "endpoint",
  setup(host) {
    for (const prefix of host.mounts("vendor-b")) {
      for (const version of versions) addRoutes(host, prefix, version)
    }
  },
} satisfies Plugin

const addRoutes = (host: Host, prefix: string, version: Version): void => {
  host.route({
    method: "POST",
    path: `/${prefix}/${version}/models/{model_and_method}/`,
    access: "key",
    dialect: "google",
    model: call => {
      checkAlt(host, call)
      return namesOf(host, call).model
    },
    accepts: {
      types: ["llm"],
      wire: "google",
      family,
      otherwise: { code: "model_mismatch", message: "Model 'X' is not a Google model" },
    },
    charge: "usage",
    free: call => namesOf(host, call).method === "countTokens",
    limit: "common",
    reads: ["generation_config", "serviceTier"],
    finds: storedIds.suspects,
    parts: { keys: { inlineData: "image", inline_data: "image", fileData: "file", file_data: "file" } },
    demand: (body, call) => demand(body, namesOf(host, call).method),
    handle: call => generate(host, call, version),
  })
  host.route({
    method: "GET",
    path: `/${prefix}/${version}/models/`,
    access: "key",
    dialect: "google",
    model: "none",
    charge: "none",
    limit: "common",
    handle: async call => {
      const usable = usableModels(host.catalog.models, call.get("principal").identity.organisation)
      return call.reply(200, pageOf(generateModels(usable), call.query))
    },
  })
}

/** `model:method`; an unknown method is an unknown path. */
const namesOf = (host: Host, { params }: Call): { readonly model: string; readonly method: MethodName } => {
  const text = params.model_and_method as string
  const colon = text.lastIndexOf(":")
  const method = methods.find(name => name === text.slice(colon + 1))
  if (colon < 1 || method === undefined) throw host.error("not_found", "Not found")
  return { model: text.slice(0, colon), method }
}

const alts: ReadonlySet<string> = new Set(["sse", "json"])

/** Answers in another form, such as `proto`, tell the meter nothing. Checked with the model: before anything is held. */
const checkAlt = (host: Host, { query }: Call): void => {
  const alt = query.getAll("alt").find(value => !alts.has(value))
  if (alt === undefined) return
  throw host.error("invalid_request", "The query parameter 'alt' must be sse or json", { param: "alt" })
}

const demand = (body: Body, method: MethodName): Demand => {
  const given = body.field("generationConfig") ?? body.field("generation_config")
  const config = isObject(given) ? given : {}
  return demandOf({
    stream: method === "streamGenerateContent",
    maxOutput: wholeNumber(config.maxOutputTokens ?? config.max_output_tokens),
    choices: wholeNumber(config.candidateCount ?? config.candidate_count),
    serviceTier: tierWord(body.field("serviceTier") ?? body.field("service_tier")),
  })
}

/** This wire knows the values of an enum by their short names and by their full ones; answers tell the short ones. */
const tierWord = (tier: unknown): unknown =>
  typeof tier === "string" ? tier.replace(/^SERVICE_TIER_/, "").toLowerCase() : tier

/** This wire writes whole numbers as numbers or as text. */
const wholeNumber = (value: unknown): number | undefined => {
  const number = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value
  return typeof number === "number" && number > 0 ? number : undefined
}

const generate = async (host: Host, call: Call, version: Version) => {
  const { method } = namesOf(host, call)
  refuseStoredIds(host, call, await call.body(), storedIds)
  return call.exchange(
    (target): Draft => ({
      verb: "relay",
      api: method === "countTokens" ? "count" : "generate",
      path: `/${version}/models/${encodeURIComponent(target.model)}:${method}`,
      streamed: method === "streamGenerateContent",
      splice: false, // the model stands in the path
    }),
  )
}
