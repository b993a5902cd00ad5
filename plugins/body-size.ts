/** The limit of request bodies: a declared length is refused here, a counted one by whoever reads the body. */

import { type Plugin, parseSize, sizeSchema } from "../core/index.ts"

interface Options {
  readonly max: string
}

export default {
  name: "body-size",
  api: 1,
  options: {
    type: "object",
    additionalProperties: false,
    properties: { max: { ...sizeSchema, default: "25MB" } },
  },
  setup(host, { max }) {
    const maxBytes = parseSize(max)
    host.use({
      provides: ["bodyMaxBytes"],
      bounds: () => `bodies of at most ${max}`,
      run(call, next) {
        call.set("bodyMaxBytes", maxBytes)
        if (Number(call.headers["content-length"] ?? 0) > maxBytes) {
          throw host.error("body_too_large", `Request body too large. Maximum size is ${max}.`)
        }
        return next()
      },
    })
  },
} satisfies Plugin<Options>
