/**
 * What is written to clients within one turn of the event loop goes out at its end: several events of one stream in one
 * packet, and all streams one after the other, so that their readers are woken once and not for each event.
 */

import type { Socket } from "node:net"

let corked: Socket[] = []

const flush = (): void => {
  const sockets = corked
  corked = []
  for (const socket of sockets) socket.uncork()
}

/** Holds back what is written to the socket until the end of this turn. */
export const gather = (socket: Socket): void => {
  if (socket.writableCorked > 0) return
  socket.cork()
  if (corked.push(socket) === 1) setImmediate(flush)
}
