/**
 * Tokens counted together, and those that no vendor counted: the input of a request, and the output of an answer whose
 * vendor tells no usage.
 */

import type { Bucket, Usage } from "../offer.ts"
import type { BodyScan } from "../plugin.ts"

/** Text shorter than three bytes a token is rare in every tokenizer; a part counts flat, whatever its bytes. */
const bytesPerToken = 3
const tokensPerImage = 1600
const tokensPerFile = 3000

/** Tokens, rounded up: rather more than a vendor counts, so that a hold covers the input. */
export const estimatedInput = ({
  textBytes,
  images,
  files,
}: Pick<BodyScan, "textBytes" | "images" | "files">): number =>
  Math.ceil(textBytes / bytesPerToken) + images * tokensPerImage + files * tokensPerFile

/** UTF-8 bytes of output text for one counted token. */
const bytesPerOutputToken = 3.5

/** Tokens, rounded up. */
export const countedOutput = (outputBytes: number): number => Math.ceil(outputBytes / bytesPerOutputToken)

/** The sum of some quantities of a usage. */
export const tokensIn = (usage: Usage, names: readonly Bucket[]): number => {
  let total = 0
  for (const name of names) total += usage[name] ?? 0
  return total
}
