/** Passwords: which are good enough, and bcrypt with a bound on how much of the machine it may take. */
import { createRequire } from 'node:module'
import bcrypt from 'bcrypt'
import { z } from 'zod'
import { routedBlock } from '../http/networks.ts'
import { Refusal } from '../http/refusals.ts'
import { createFairQueue, type FairQueueBounds, QueueFull } from './fair-queue.ts'

const cost = 12
const charactersMin = 10
/** What bcrypt reads; it would ignore the rest without a word. */
const bytesMax = 72

/** bcrypt runs on libuv's four threads, and so does the signing of access tokens: it gets half of them. */
const bounds = {
  runningMax: 2,
  /** About nine seconds of work; whoever comes after is told to come back. */
  waitingMax: 64,
}
const hashSeconds = 0.3

/** The same characters typed on another keyboard are the same password. */
const normalized = (text: string): string => text.normalize('NFC')

/** Whether bcrypt would see all of the text, and as it is. */
const isHashable = (text: string): boolean => Buffer.byteLength(text) <= bytesMax && !/[\0\p{Surrogate}]/u.test(text)

let common: { test(password: string): boolean } | undefined

/** Loaded when the first password is chosen: 50,000 entries, 14 MB and 30 ms. All of them are in lower case. */
function isCommon(password: string): boolean {
  common ??= createRequire(import.meta.url)('fxa-common-password-list') as { test(password: string): boolean }
  return common.test(password) || common.test(password.toLowerCase())
}

/** A password that may be chosen. One that is only typed to sign in is any text: see {@link Passwords.matches}. */
export const NewPassword = z
  .string()
  .describe(`At least ${charactersMin} characters, at most ${bytesMax} bytes of UTF-8, and not a common password.`)
  .transform(normalized)
  .refine((text) => !/[\0\p{Surrogate}]/u.test(text), {
    error: 'has characters that are none: type it again without them',
    abort: true,
  })
  .refine((text) => [...text].length >= charactersMin, {
    error: `is shorter than ${charactersMin} characters: choose a longer one`,
    abort: true,
  })
  .refine((text) => Buffer.byteLength(text) <= bytesMax, {
    error: `is longer than ${bytesMax} bytes: choose a shorter one`,
    abort: true,
  })
  .refine((text) => !isCommon(text), 'is on the list of common passwords: choose one that nobody else would')

export interface Passwords {
  /**
   * Networks that wait are served in turns, so that none keeps the others waiting (`api/identity/fair-queue.ts`). Refuses with
   * `temporarily_unavailable` when too many wait.
   * @param password one that passed {@link NewPassword}.
   * @param ip who asks.
   */
  hash(password: string, ip: string): Promise<string>
  /**
   * Whether this is the password, after the same work whether there is one to compare with or not, and whatever was typed.
   * Waits and refuses as {@link Passwords.hash}.
   */
  matches(password: string, hash: string | null | undefined, ip: string): Promise<boolean>
}

/** What is compared with when there is nothing to compare with: of the same cost, or the time would tell. Of a password that nobody kept. */
const dummyHash = '$2b$12$aOzKkHEvndINqSflfF2RNecyp4A1QFiuadSzK7S0ce8Nyl2VroOjG'

export function createPasswords({ runningMax, waitingMax }: FairQueueBounds = bounds): Passwords {
  const queue = createFairQueue({ runningMax, waitingMax })

  const bounded = <Result>(ip: string, work: () => Promise<Result>): Promise<Result> =>
    queue.run(routedBlock(ip), work).catch((error: unknown) => {
      if (!(error instanceof QueueFull)) throw error
      const seconds = Math.ceil((error.waiting * hashSeconds) / runningMax)
      throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': String(seconds) } })
    })

  return {
    hash: (password, ip) => bounded(ip, () => bcrypt.hash(password, cost)),
    matches: async (password, hash, ip) => {
      const typed = normalized(password)
      const comparable = isHashable(typed)
      const compared = hash && comparable ? hash : dummyHash
      const same = await bounded(ip, () => bcrypt.compare(comparable ? typed : '', compared))
      return same && comparable && Boolean(hash)
    },
  }
}
