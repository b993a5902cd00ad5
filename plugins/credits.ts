/** `GET /credits/`: what the member has left. */

import { creditsJson, type Plugin } from "../core/index.ts"

export default {
  name: "credits",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "GET",
      path: "/credits/",
      access: "key",
      dialect: "plain",
      model: "none",
      charge: "none",
      limit: "common",
      async handle(call) {
        const { granted, spent, held, available } = await host.ledger.balance(call.get("principal"))
        return call.reply(200, {
          object: "credit_balance",
          balance: creditsJson(granted - spent), // = available + held
          held: creditsJson(held),
          available: creditsJson(available),
          unit: "credits",
        })
      },
    })
  },
} satisfies Plugin
