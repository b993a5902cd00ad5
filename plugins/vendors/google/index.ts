/** The generate-content wire. */

import type { Adapter, Api } from "../../../core/index.ts"
import { unmetered } from "../common/whole-meter.ts"
import { chatSpoke } from "./chat/index.ts"
import { googleDialect } from "./dialect.ts"
import { embeddingsSpoke, embedMeter } from "./embeddings.ts"
import { fault } from "./faults.ts"
import { GenerateMeter, generateSign } from "./meter.ts"

const generate: Api = { usage: () => new GenerateMeter(), sign: generateSign }

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
  apis: { generate, count: unmetered, embed: embedMeter },
  fault,
  chat: chatSpoke,
  embeddings: embeddingsSpoke,
} satisfies Adapter
