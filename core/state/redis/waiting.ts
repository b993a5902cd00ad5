/** One deadline for many commands on one timer: all wait equally long, so the oldest is always the next to expire. */

export class Waiting {
  readonly #deadlineMs: number
  readonly #expiries = new Map<object, { readonly at: number; readonly expire: () => void }>()
  #timer: NodeJS.Timeout | undefined

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
  }

  /** `expire` runs once when the deadline passes; the answer ends the wait. */
  start(expire: () => void): () => void {
    const token = {}
    this.#expiries.set(token, { at: performance.now() + this.#deadlineMs, expire })
    if (this.#timer === undefined) this.#arm(this.#deadlineMs)
    return () => void this.#expiries.delete(token)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#scan(), Math.ceil(ms))
  }

  #scan(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const [token, { at, expire }] of this.#expiries) {
      if (at > now) return this.#arm(at - now)
      this.#expiries.delete(token)
      expire()
    }
  }
}
