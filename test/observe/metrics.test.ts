import t from "tap"
import { childrenMax } from "../../core/observe/family.ts"
import { meters } from "../../core/observe/meters.ts"
import { createMetrics } from "../../core/observe/metrics.ts"
import type { Counter, Gauge, Histogram } from "../../core/plugin.ts"

/** The samples of a metric, as lines of the exposition. */
const lines = async (hub: ReturnType<typeof createMetrics>, name: string): Promise<string[]> =>
  (await hub.render()).split("\n").filter(line => line.startsWith(name))

t.test("a counter adds one or more, per label values", async t => {
  const hub = createMetrics({ defaults: false })
  const requests: Counter = hub.product("http_requests_total")
  const child = requests.child("/models/", "GET", "200")
  child.add()
  child.add(2)
  requests.child("/models/", "GET", "404").add()
  t.same(await lines(hub, "tollgate_http_requests_total"), [
    'tollgate_http_requests_total{route="/models/",method="GET",status="200"} 3',
    'tollgate_http_requests_total{route="/models/",method="GET",status="404"} 1',
  ])
})

t.test("the same label values give the same child", async t => {
  const requests: Counter = createMetrics({ defaults: false }).product("http_requests_total")
  t.equal(requests.child("a", "b", "c"), requests.child("a", "b", "c"))
  t.not(requests.child("a", "b", "c"), requests.child("a", "c", "b"))
})

t.test("a gauge is set and moved", async t => {
  const hub = createMetrics({ defaults: false })
  const gauge: Gauge = hub.product("requests_in_flight")
  gauge.child().add(1)
  gauge.child().add(1)
  gauge.child().add(-1)
  t.same(await lines(hub, "tollgate_requests_in_flight"), ["tollgate_requests_in_flight 1"])
  gauge.child().set(7)
  t.same(await lines(hub, "tollgate_requests_in_flight"), ["tollgate_requests_in_flight 7"])
})

t.test("a histogram's buckets are cumulative, and a value on a bound is inside it", async t => {
  const hub = createMetrics({ defaults: false })
  const seconds = hub.forPlugin("mine").histogram("wait_seconds", "Wait", ["kind"], [0.1, 1])
  for (const value of [0.05, 0.1, 0.5, 3]) seconds.child("a").observe(value)
  t.same(await lines(hub, "tollgate_plugin_mine_wait_seconds"), [
    'tollgate_plugin_mine_wait_seconds_bucket{kind="a",le="0.1"} 2',
    'tollgate_plugin_mine_wait_seconds_bucket{kind="a",le="1"} 3',
    'tollgate_plugin_mine_wait_seconds_bucket{kind="a",le="+Inf"} 4',
    'tollgate_plugin_mine_wait_seconds_sum{kind="a"} 3.65',
    'tollgate_plugin_mine_wait_seconds_count{kind="a"} 4',
  ])
})

t.test("every metric of the table has its help and type, and one without labels starts at zero", async t => {
  const hub = createMetrics({ defaults: false })
  const text = await hub.render()
  for (const { name, type, help, labels } of meters) {
    t.match(text, `# HELP tollgate_${name} ${help}\n# TYPE tollgate_${name} ${type}\n`)
    if (labels.length === 0) t.match(text, `\ntollgate_${name} 0\n`)
  }
  t.match(hub.contentType, /^text\/plain; version=0\.0\.4/)
})

t.test("the table's label sets are small and name nothing of a member", async t => {
  for (const { name, labels } of meters) {
    t.ok(labels.length <= 3, name)
    for (const label of labels) t.notMatch(label, /^(member|key|org|organisation|operation_id|prompt|path|url)$/)
  }
})

t.test("Node's own metrics are there when asked for", async t => {
  t.match(await createMetrics({ defaults: true }).render(), /nodejs_eventloop_lag/)
  t.notMatch(await createMetrics({ defaults: false }).render(), /nodejs_/)
})

t.test("a name that is not in the table throws", async t => {
  const { product } = createMetrics({ defaults: false })
  t.throws(() => product("http_requests"), /No metric "http_requests"/)
  t.throws(() => product("__proto__"), /No metric/)
})

t.test("a wrong number of labels throws", async t => {
  const requests: Counter = createMetrics({ defaults: false }).product("http_requests_total")
  t.throws(() => requests.child("one"), /takes 3 labels, not 1/)
})

t.test("beyond its bound of children a family counts under `other`", async t => {
  const hub = createMetrics({ defaults: false })
  const bucket: Counter = hub.product("rate_limited_total")
  for (let n = 0; n < childrenMax + 500; n += 1) bucket.child(`b${n}`).add()
  const seen = await lines(hub, "tollgate_rate_limited_total")
  t.equal(seen.length, childrenMax + 1)
  t.equal(seen.at(-1), 'tollgate_rate_limited_total{bucket="other"} 500')
})

t.test("values that are no numbers, and negative counts, change nothing", async t => {
  const hub = createMetrics({ defaults: false })
  const mine = hub.forPlugin("mine")
  const wrong = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of [...wrong, -1]) mine.counter("c", "C").child().add(value)
  for (const value of wrong) {
    mine.gauge("g", "G").child().set(value)
    mine.gauge("g", "G").child().add(value)
    mine.histogram("h", "H", [], [1]).child().observe(value)
  }
  t.same(await lines(hub, "tollgate_plugin_mine_c"), ["tollgate_plugin_mine_c 0"])
  t.same(await lines(hub, "tollgate_plugin_mine_g"), ["tollgate_plugin_mine_g 0"])
  t.same(await lines(hub, "tollgate_plugin_mine_h_count"), ["tollgate_plugin_mine_h_count 0"])
})

t.test("a plugin that is set up again finds its metric, and another shape is refused", async t => {
  const hub = createMetrics({ defaults: false })
  const first = hub.forPlugin("my-plugin").counter("calls_total", "Calls", ["kind"])
  first.child("a").add()
  const second = hub.forPlugin("my-plugin").counter("calls_total", "Calls", ["kind"])
  second.child("a").add()
  t.same(await lines(hub, "tollgate_plugin_my_plugin_calls_total"), [
    'tollgate_plugin_my_plugin_calls_total{kind="a"} 2',
  ])
  t.throws(() => hub.forPlugin("my-plugin").gauge("calls_total", "Calls", ["kind"]), /another shape/)
  t.throws(() => hub.forPlugin("my-plugin").counter("calls_total", "Calls"), /another shape/)
})

t.test("bad names, labels and buckets are refused at registration", async t => {
  const mine = createMetrics({ defaults: false }).forPlugin("mine")
  t.throws(() => mine.counter("calls total", "x"), /needs a name/)
  t.throws(() => mine.counter("a", "x", ["a", "b", "c", "d"]), /more than 3 labels/)
  t.throws(() => mine.counter("b", "x", ["le"]), /bad label/)
  t.throws(() => mine.counter("c", "x", ["a", "a"]), /repeats a label/)
  t.throws(() => mine.histogram("d", "x", [], []), /ascending/)
  t.throws(() => mine.histogram("e", "x", [], [2, 1]), /ascending/)
})

t.test("label values cannot break a line", async t => {
  const hub = createMetrics({ defaults: false })
  const bucket: Counter = hub.product("rate_limited_total")
  bucket.child('a"} 9\nevil_total 1').add()
  t.notMatch(await hub.render(), /^evil_total/m)
})

t.test("observations land in the histograms of the table", async t => {
  const hub = createMetrics({ defaults: false })
  const overhead: Histogram = hub.product("overhead_seconds")
  overhead.child("/models/").observe(0.0002)
  t.match(await hub.render(), 'tollgate_overhead_seconds_bucket{route="/models/",le="0.00025"} 1')
})
