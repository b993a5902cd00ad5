/** Other programs as the bench sees them: started, measured by the operating system's counters, ended. */

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { setTimeout } from "node:timers/promises"

export interface Program {
  readonly pid: number
  /** Ends it: SIGTERM, and SIGKILL for one that does not listen. */
  stop(): Promise<void>
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  /** The standard output goes here; nowhere when absent. */
  readonly output?: number
  readonly cwd?: string
}

const patienceMs = 5_000

export const run = (command: string, words: readonly string[], options: RunOptions = {}): Program => {
  const { env = {}, output, cwd } = options
  const stdio: StdioOptions = ["ignore", output ?? "ignore", "inherit"]
  const child = spawn(command, words, { stdio, env: { ...process.env, ...env }, ...(cwd === undefined ? {} : { cwd }) })
  const kill = (): void => void child.kill("SIGKILL")
  process.once("exit", kill)
  child.once("exit", () => process.off("exit", kill))
  return { pid: child.pid!, stop: () => stop(child) }
}

const stop = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, "exit")
  child.kill("SIGTERM")
  const killer = globalThis.setTimeout(() => child.kill("SIGKILL"), patienceMs)
  await exit
  clearTimeout(killer)
}

/** Runs a program of ours to its end; its last line of output is JSON. */
export const result = async <T>(file: string, argument: unknown): Promise<T> => {
  const child = spawn(process.execPath, [file, JSON.stringify(argument)], { stdio: ["ignore", "pipe", "inherit"] })
  const chunks: Buffer[] = []
  child.stdout.on("data", chunk => chunks.push(chunk))
  const [code] = await once(child, "close")
  if (code !== 0) throw new Error(`${file} ended with ${code}`)
  return JSON.parse(Buffer.concat(chunks).toString()) as T
}

/** A port that was free a moment ago. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, "close")
  return port
}

/** Asks again every few milliseconds. @throws Error after `ms` */
export const until = async (what: string, ready: () => Promise<boolean>, ms = 30_000): Promise<void> => {
  const end = performance.now() + ms
  while (!(await ready())) {
    if (performance.now() > end) throw new Error(`${what} was not ready in ${ms} ms`)
    await setTimeout(2)
  }
}

/** Whether this address answers with 2xx. */
export const answers = async (url: string): Promise<boolean> => {
  try {
    const answer = await fetch(url)
    await answer.arrayBuffer()
    return answer.ok
  } catch {
    return false
  }
}

/** Linux reports in hundredths of a second, whatever the kernel's own tick is. */
const microsPerTick = 10_000
const utime = 11
const stime = 12

/** CPU time of a process and all its threads so far, user and system, in microseconds. */
export const cpuMicros = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
  // The command's name may hold spaces and brackets: fields are counted from the last bracket.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[utime]) + Number(fields[stime])) * microsPerTick
}

const status = (pid: number, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) * 1024

/** Resident memory in bytes: now, and the most so far. */
export const memory = (pid: number): { readonly now: number; readonly peak: number } => ({
  now: status(pid, "VmRSS"),
  peak: status(pid, "VmHWM"),
})
