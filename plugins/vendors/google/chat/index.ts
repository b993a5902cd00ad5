/** Chat completions on the generate-content wire. */

import type { ChatSpoke } from "../../../../core/index.ts"
import { generateRequest } from "./request.ts"
import { GenerateStream } from "./stream.ts"
import { completionOf } from "./whole.ts"

export const chatSpoke: ChatSpoke = {
  api: "generate",
  mapsEfforts: true,
  request: generateRequest,
  whole: completionOf,
  stream: (context, memo) => new GenerateStream(context, memo),
}
