/** The input tokens of a Messages request for a model of another family: counted here, no vendor is asked. */

import { estimatedInput, type JsonObject, list, record, text } from "../../core/index.ts"
import { tokensOf } from "./tokenizer.ts"

/** What stands around a message: its role and two separators. */
const tokensPerMessage = 4

/** Text by the tokenizer; an image or a file by the flat number that its hold would use. */
export const countInput = async (request: JsonObject): Promise<number> => {
  const told = new Told()
  told.content(request.system)
  const messages = list(request.messages)
  for (const message of messages) told.content(record(message).content)
  for (const tool of list(request.tools)) told.tool(record(tool))
  const { texts, images, files } = told
  return (await tokensOf(texts)) + messages.length * tokensPerMessage + estimatedInput({ textBytes: 0, images, files })
}

/** What a model of another family would be told. */
class Told {
  readonly texts: string[] = []
  images = 0
  files = 0

  content(content: unknown): void {
    if (typeof content === "string") this.#say(content)
    for (const one of list(content)) this.#block(record(one))
  }

  tool({ name, description, input_schema }: JsonObject): void {
    this.#say(name)
    this.#say(description)
    this.#data(input_schema)
  }

  /** Thoughts stay with the model that had them. */
  #block(block: JsonObject): void {
    if (block.type === "image") this.images += 1
    else if (block.type === "document") this.#document(block)
    else if (block.type !== "thinking" && block.type !== "redacted_thinking") this.#words(block)
  }

  #document({ title, source }: JsonObject): void {
    const { type, data, content } = record(source)
    if (type !== "text" && type !== "content") {
      this.files += 1
      return
    }
    this.#say(title)
    this.#say(data)
    this.content(content)
  }

  /** A text, a tool's call or result, a search result. */
  #words(block: JsonObject): void {
    for (const field of ["text", "name", "title", "source"]) this.#say(block[field])
    this.#data(block.input)
    this.content(block.content)
  }

  #data(value: unknown): void {
    if (value !== undefined) this.#say(JSON.stringify(value))
  }

  #say(value: unknown): void {
    const told = text(value)
    if (told !== undefined) this.texts.push(told)
  }
}
