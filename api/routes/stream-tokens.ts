/** Stream tokens: what a user's streams are let in by at the relays. */
import { randomInt } from 'node:crypto'
import { Refusal } from '../http/refusals.ts'
import { route } from '../http/route.ts'

const length = 8
const alphanumerics = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

export const newStreamToken = (): string =>
  Array.from({ length }, () => alphanumerics[randomInt(alphanumerics.length)]).join('')

export const regenerate = route({
  method: 'POST',
  path: '/user/regenerate-tokens',
  summary: 'A new stream token: deferred, and not available yet',
  caller: 'user',
  answers: {},
  refuses: ['not_available'],
  handle: () => {
    throw new Refusal('not_available')
  },
})
