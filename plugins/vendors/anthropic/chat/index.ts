/** Chat completions on the Messages wire. */

import type { ChatSpoke } from "../../../../core/index.ts"
import type { ChatMemo } from "./memo.ts"
import { messagesRequest } from "./request.ts"
import { MessagesStream } from "./stream.ts"
import { wholeAnswer } from "./whole.ts"

/** The memo is what `request` made of the same call. */
export const chatSpoke: ChatSpoke = {
  api: "messages",
  mapsEfforts: true,
  request: messagesRequest,
  whole: (body, context, memo) => wholeAnswer(body, context, memo as ChatMemo),
  stream: (context, memo) => new MessagesStream(context, memo as ChatMemo),
}
