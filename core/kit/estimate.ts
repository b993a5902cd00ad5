/** The input of a request before any vendor counted it. */

import type { BodyScan } from "../plugin.ts"

/** Text shorter than three bytes a token is rare in every tokenizer; a part counts flat, whatever its bytes. */
const bytesPerToken = 3
const tokensPerImage = 1600
const tokensPerFile = 3000

/** Tokens, rounded up. @see design, section 5 */
export const estimatedInput = ({
  textBytes,
  images,
  files,
}: Pick<BodyScan, "textBytes" | "images" | "files">): number =>
  Math.ceil(textBytes / bytesPerToken) + images * tokensPerImage + files * tokensPerFile
