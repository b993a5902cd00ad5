/** What a model refuses or renames of a chat request. */
import t from "tap"
import type { ChatRequest, Model, Rules } from "../../core/index.ts"
import { applyRules } from "../../plugins/chat/rules.ts"

const model = (rules: Rules, family = "some-family"): Model => ({
  name: "some-model",
  type: "llm",
  family,
  targets: [],
  created: 0,
  rules,
  messages: false,
  offered: true,
  capabilities: [],
  aliases: [],
})

const ask = (fields: object): ChatRequest => ({ model: "some-model", messages: [], ...fields })
const plain = model({})
const f = { type: "function", function: { name: "f" } }
const thinking = model({}, "google")

t.test("a request that no rule touches passes as it is", async t => {
  const request = ask({ temperature: 0.3, stop: ["a", "b", "c", "d"], thinking_budget: 7, thinking_level: "odd", x: 1 })
  t.equal(applyRules(request, plain), request)
})

t.test("a rule that is broken is a 400 that names the field", async t => {
  const strict = model({ temperature: [1], refuse: ["top_p", "tool_choice"], efforts: ["low", "high"] })
  const broken: readonly (readonly [Model, object, string])[] = [
    [plain, { stop: ["a", "b", "c", "d", "e"] }, "stop"],
    [plain, { deferred: true }, "deferred"],
    [plain, { deferred: "true" }, "deferred"],
    [plain, { enable_search: true }, "enable_search"],
    [plain, { tools: [{ type: "web_search", web_search: { enable: true } }] }, "tools[0].type"],
    [plain, { tools: [f, { type: "builtin_function", function: { name: "$web_search" } }] }, "tools[1].type"],
    [plain, { temperature: 2.1 }, "temperature"],
    [plain, { temperature: -0.1 }, "temperature"],
    [plain, { temperature: "1" }, "temperature"],
    [plain, { temperature: Number.NaN }, "temperature"],
    [strict, { temperature: 0.9 }, "temperature"],
    [strict, { top_p: 1 }, "top_p"],
    [strict, { tool_choice: "required" }, "tool_choice"],
    [strict, { tool_choice: { type: "function", function: { name: "f" } } }, "tool_choice"],
    [strict, { reasoning_effort: "medium" }, "reasoning_effort"],
    [thinking, { thinking_level: "extreme" }, "thinking_level"],
    [thinking, { thinking_budget: 1.5 }, "thinking_budget"],
    [thinking, { thinking_budget: -2 }, "thinking_budget"],
    [thinking, { thinking_budget: "100" }, "thinking_budget"],
    [model({ efforts: ["low"] }, "google"), { thinking_level: "high" }, "reasoning_effort"],
  ]
  for (const [model, fields, param] of broken) {
    t.throws(() => applyRules(ask(fields), model), { code: "invalid_request", param }, JSON.stringify(fields))
  }
})

t.test("an effort that the model does not offer is left to the wires that map it", async t => {
  const some = model({ efforts: ["low", "high"], refuse: ["top_k"] })
  for (const reasoning_effort of ["none", "minimal", "medium", "xhigh"]) {
    t.same(applyRules(ask({ reasoning_effort }), some, true), ask({ reasoning_effort }))
    t.throws(() => applyRules(ask({ reasoning_effort }), some), { code: "invalid_request", param: "reasoning_effort" })
  }
  t.throws(() => applyRules(ask({ top_k: 1 }), some, true), { code: "invalid_request", param: "top_k" })
})

t.test("what a rule allows, and null, passes", async t => {
  const strict = model({ temperature: [1], refuse: ["top_p", "tool_choice"], efforts: ["low", "high"] })
  const fine = [
    { temperature: 1 },
    { temperature: null, top_p: null, reasoning_effort: null },
    { tool_choice: "auto" },
    { tool_choice: "none" },
    { reasoning_effort: "high" },
    { stop: "one" },
    { deferred: false },
    { deferred: null },
    { enable_search: false },
    { tools: [f, { type: "custom", custom: { name: "c" } }, { function: { name: "untyped" } }] },
    { tools: null },
  ]
  for (const fields of fine) t.same(applyRules(ask(fields), strict), ask(fields))
})

t.test("thinking by level or budget becomes an effort for the family that has them", async t => {
  const efforts: readonly (readonly [object, string | undefined])[] = [
    [{ thinking_level: "minimal" }, "low"],
    [{ thinking_level: "low" }, "low"],
    [{ thinking_level: "medium" }, "medium"],
    [{ thinking_level: "high" }, "high"],
    [{ thinking_budget: 1 }, "low"],
    [{ thinking_budget: 2_048 }, "low"],
    [{ thinking_budget: 2_049 }, "medium"],
    [{ thinking_budget: 16_384 }, "medium"],
    [{ thinking_budget: 16_385 }, "high"],
    [{ thinking_budget: 0 }, undefined],
    [{ thinking_budget: -1 }, undefined],
    [{ thinking_level: "low", thinking_budget: 30_000 }, "low"],
    [{ thinking_level: null, thinking_budget: 30_000 }, "high"],
    [{ thinking_budget: 0, reasoning_effort: "medium" }, "medium"],
    [{ thinking_level: "high", reasoning_effort: "low" }, "high"],
    [{ reasoning_effort: "low" }, "low"],
  ]
  for (const [fields, effort] of efforts) {
    const expected = ask(effort === undefined ? {} : { reasoning_effort: effort })
    t.same(applyRules(ask(fields), thinking), expected, JSON.stringify(fields))
  }
})
