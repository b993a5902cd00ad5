import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import t from "tap"
import { giveBackWhenQuiet } from "../../core/cli/quiet.ts"
import { testClock } from "../../core/observe/clock.ts"
import { root } from "../fixtures/sources.ts"

const minute = 60_000

/** A process that had 100 bytes when it was looked at first. */
const machineOf = () => {
  const machine = {
    share: 0,
    resident: 100,
    given: 0,
    busy: () => machine.share,
    residentBytes: () => machine.resident,
    giveBack() {
      machine.given += 1
      machine.resident = 120
    },
  }
  return machine
}

t.test("the memory of a peak is given back after ten quiet minutes, once", async t => {
  const clock = testClock()
  const machine = machineOf()
  giveBackWhenQuiet(clock, machine)
  machine.resident = 300
  await clock.advance(10 * minute - 1)
  t.equal(machine.given, 0, "not before")
  await clock.advance(1)
  t.equal(machine.given, 1)
  await clock.advance(60 * minute)
  t.equal(machine.given, 1, "what is left is what the process needs now")
  machine.resident = 300
  await clock.advance(10 * minute)
  t.equal(machine.given, 2, "the next peak's memory too")
})

t.test("a process at work keeps its memory and its compiled code, and so does one that has grown little", async t => {
  const clock = testClock()
  const machine = machineOf()
  giveBackWhenQuiet(clock, machine)
  Object.assign(machine, { resident: 300, share: 0.01 })
  await clock.advance(60 * minute)
  t.equal(machine.given, 0, "a hundredth of the time is work")
  Object.assign(machine, { resident: 150, share: 0 })
  await clock.advance(60 * minute)
  t.equal(machine.given, 0, "half as much again is not worth it")
  machine.resident = 151
  await clock.advance(10 * minute)
  t.equal(machine.given, 1)
})

t.test("this version of Node knows what V8 is told", t => {
  const file = pathToFileURL(join(root, "core/cli/engine.ts")).href
  const script = `
    const { giveBackMemory, keepCompiledCode } = await import(${JSON.stringify(file)})
    const used = () => process.getBuiltinModule("v8").getHeapStatistics().used_heap_size
    const peak = () => [Array.from({ length: 1_000_000 }, (_, at) => ({ at })), used()].at(-1)
    keepCompiledCode()
    const before = peak()
    giveBackMemory()
    console.log(used() < before / 2)`
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  })
  t.same({ stdout, stderr, status }, { stdout: "true\n", stderr: "", status: 0 })
  t.end()
})
