/** The generate-content wire. */

import type { Adapter, Api } from "../../../core/index.ts"
import { chatSpoke } from "./chat/index.ts"
import { googleDialect } from "./dialect.ts"
import { embeddingsSpoke, embedMeter } from "./embeddings.ts"
import { fault } from "./faults.ts"
import { GenerateMeter, generateSign } from "./meter.ts"

/** The API takes both spellings of its names. */
const parts = {
  keys: { inlineData: "image", inline_data: "image", fileData: "file", file_data: "file" },
} as const

const generate: Api = { usage: () => new GenerateMeter(), sign: generateSign, parts }

/** Free of charge at the vendor. */
const count: Api = {
  usage: () => ({ whole() {}, event() {}, report: () => ({ outputBytes: 0 }) }),
  sign: () => ({ sign: "content" }),
  metered: false,
}

const embed: Api = { ...embedMeter, parts }

export default {
  name: "google",
  dialect: googleDialect,
  fields: {
    // Not `accept`: answers in protobuf tell the meter nothing.
    toVendor: ["content-type"],
    toClient: ["content-type", "retry-after", "x-gemini-service-tier"],
    query: ["alt"],
  },
  authorise: secret => ({ "x-goog-api-key": secret.reveal() }),
  apis: { generate, count, embed },
  fault,
  chat: chatSpoke,
  embeddings: embeddingsSpoke,
} satisfies Adapter
