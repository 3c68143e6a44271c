/** Stream tokens: what a user's streams are let in by at the relays. */
import { randomInt } from 'node:crypto'

const length = 8
const alphanumerics = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

export const newStreamToken = (): string =>
  Array.from({ length }, () => alphanumerics[randomInt(alphanumerics.length)]).join('')
