/** `POST /keys/revoke/`: a key ends itself, for ever; the next call with it is 401. */

import type { Plugin } from "../core/index.ts"

export default {
  name: "keys",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "POST",
      path: "/keys/revoke/",
      access: "key",
      dialect: "plain",
      model: "none",
      charge: "none",
      limit: "common",
      async handle(call) {
        const { key } = call.get("principal")
        const record = await host.store.directory.changeKey(key, "revoked") // durable before it is confirmed
        if (record === undefined) throw host.error("unauthorized", "Invalid API key")
        return call.reply(200, { object: "key", id: record.id, state: record.state })
      },
    })
  },
} satisfies Plugin
