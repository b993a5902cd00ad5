import { format, inspect } from "node:util"
import t from "tap"
import { hidden } from "../../core/catalog/secret.ts"

t.test("a secret tells its value to nobody but `reveal`", async t => {
  const secret = hidden("OPENAI_API_KEY", "sk-real")
  const shown = [
    String(secret),
    `${secret}`,
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ deep: [secret] }, { showHidden: true, depth: null }),
    format("%s %o %j %O", secret, secret, secret, secret),
    Object.values(secret).join(),
    JSON.stringify({ ...secret }),
  ]
  for (const text of shown) t.notMatch(text, "sk-real")
  for (const text of shown.slice(0, 6)) t.match(text, "[secret]")
  t.equal(secret.reveal(), "sk-real")
  t.equal(secret.name, "OPENAI_API_KEY")
})
