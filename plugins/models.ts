/** `GET /models/` and `GET /models/{model}/`: what this organisation may call, in the OpenAI format. */

import {
  type Call,
  describePrice,
  type Host,
  invalidInput,
  type Model,
  type ModelType,
  modelTypes,
  type Organisation,
  type Plugin,
  type Route,
  usableModels,
} from "../core/index.ts"

const shared = {
  method: "GET",
  access: "key",
  dialect: "openai",
  model: "none",
  charge: "none",
  limit: "common",
} as const satisfies Partial<Route>

export default {
  name: "models",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      ...shared,
      path: "/models/",
      async handle(call) {
        const types = typesOf(call.query.get("type"))
        const models = usableModels(host.catalog.models, organisationOf(call)).filter(({ type }) => types.has(type))
        return call.reply(200, { object: "list", data: languageFirst(models).map(entryOf) })
      },
    })
    host.route({
      ...shared,
      path: "/models/{model}/",
      async handle(call) {
        const asked = call.params.model as string
        const organisation = organisationOf(call)
        const model = host.catalog.find(asked)
        if (model === undefined || !usableModels(new Map([[model.name, model]]), organisation).includes(model)) {
          throw host.error("model_not_found", `Model '${asked}' not found`, {
            param: "model",
            reason: "model_not_found",
          })
        }
        return call.reply(200, detailOf(host, model, organisation))
      },
    })
  },
} satisfies Plugin

const organisationOf = (call: Call): Organisation => call.get("principal").identity.organisation

/** One type, or several with commas between them; none means all. */
export const typesOf = (text: string | null): ReadonlySet<ModelType> => {
  if (text === null || text === "") return new Set(modelTypes)
  const types = text.split(",").map(word => {
    const type = modelTypes.find(one => one === word.trim())
    if (type !== undefined) return type
    const expected = modelTypes.map(one => `'${one}'`).join(", ")
    throw invalidInput(["query", "type"], `Input should be one of ${expected}`, "literal_error", text)
  })
  return new Set(types)
}

const languageFirst = (models: readonly Model[]): readonly Model[] => [
  ...models.filter(model => model.type === "llm"),
  ...models.filter(model => model.type !== "llm"),
]

const entryOf = ({ name, created, family, type }: Model) => ({
  id: name,
  object: "model",
  created,
  owned_by: family,
  type,
  family,
})

const detailOf = (host: Host, model: Model, organisation: Organisation) => {
  const card = host.catalog.card(model, organisation.overlay)
  return {
    ...entryOf(model),
    description: model.description, // absent fields are not written
    context_window: model.contextWindow,
    max_output_tokens: model.maxOutput,
    capabilities: model.capabilities,
    parameters: model.parameters ?? { type: "object", properties: {} },
    price: card === undefined ? undefined : describePrice(card),
    aliases: model.aliases,
  }
}
