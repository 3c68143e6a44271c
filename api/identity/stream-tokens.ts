/** Stream tokens: relays accept a stream only with the token of its user. */
import { randomInt } from 'node:crypto'

const length = 8
const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

export const createStreamToken = (): string =>
  Array.from({ length }, () => characters[randomInt(characters.length)]).join('')
