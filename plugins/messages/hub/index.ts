/** Messages for any model: a Messages request through the hub of chat, and its answer on the way back. */

export { sentCallId } from "./conversation.ts"
export { chatRequest, stopsBeyond } from "./request.ts"
export { MessageEvents } from "./stream.ts"
export { checkValues } from "./values.ts"
export { type AnswerHead, wholeMessage } from "./whole.ts"
