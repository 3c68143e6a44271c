/** Passwords: the rules for new ones, and bcrypt with limits on its use of the machine. */
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import bcrypt from 'bcrypt'
import { z } from 'zod'
import { routedPrefix } from '../http/ip-networks.ts'
import { Refusal } from '../http/refusals.ts'
import { createFairQueue, type FairQueueBounds, NotStartedError } from './fair-queue.ts'

const charactersMin = 10
/** bcrypt silently ignores further bytes. */
const bytesMax = 72

interface Settings extends FairQueueBounds {
  /** Of bcrypt, for new hashes: the binary logarithm of its rounds. */
  readonly cost: number
}

const serviceSettings: Settings = {
  cost: 12,
  /** bcrypt uses libuv's pool of four threads, and so does the signing of access tokens. bcrypt gets half of them. */
  runningMax: 2,
  /** About nine seconds of work; further requests are refused with `Retry-After`. */
  waitingMax: 64,
  /**
   * A full queue ends earlier unless the machine is overloaded. The site gives up after 20 s and the commands after 15
   * s, and a process that stops gives open requests 10 s.
   */
  waitSecondsMax: 10,
}
const hashSeconds = 0.3

/** What makes and compares the hashes. */
export interface Hashing {
  hash(text: string, cost: number): Promise<string>
  compare(text: string, hash: string): Promise<boolean>
}

/** Keyboards encode the same characters differently. */
const normalize = (text: string): string => text.normalize('NFC')

/** Whether bcrypt hashes all of the text, unchanged. */
const isHashable = (text: string): boolean => Buffer.byteLength(text) <= bytesMax && !/[\0\p{Surrogate}]/u.test(text)

let commonPasswords: { test(password: string): boolean } | undefined

/** The list has 50,000 entries in lower case. Loading takes 30 ms and 14 MB, so it waits for the first new password. */
function isCommon(password: string): boolean {
  commonPasswords ??= createRequire(import.meta.url)('fxa-common-password-list') as { test(password: string): boolean }
  return commonPasswords.test(password) || commonPasswords.test(password.toLowerCase())
}

/** The rules for a new password. At sign-in any text is accepted: see {@link Passwords.matches}. */
export const NewPassword = z
  .string()
  .describe(`At least ${charactersMin} characters, at most ${bytesMax} bytes of UTF-8, and not a common password.`)
  .transform(normalize)
  .refine((text) => !/[\0\p{Surrogate}]/u.test(text), {
    error: 'contains invalid characters: remove them',
    abort: true,
  })
  .refine((text) => [...text].length >= charactersMin, {
    error: `must have at least ${charactersMin} characters`,
    abort: true,
  })
  .refine((text) => Buffer.byteLength(text) <= bytesMax, {
    error: `must have at most ${bytesMax} bytes`,
    abort: true,
  })
  .refine((text) => !isCommon(text), 'is a common password: choose a different one')

/** The client whose request needs a hash. */
export interface PasswordClient {
  readonly ip: string
  /** The connection of the request. A hash that has not begun when it closes is not made. */
  readonly socket: Socket
}

export interface Passwords {
  /**
   * Client networks are served round robin (`api/identity/fair-queue.ts`). Refuses with `temporarily_unavailable` when
   * too many requests wait, when this one has waited for too long, and when its connection closes.
   * @param password parsed by {@link NewPassword}.
   */
  hash(password: string, client: PasswordClient): Promise<string>
  /**
   * Compares a password with a hash. Takes the same time without a hash and for every input. Queues and refuses as
   * {@link Passwords.hash} does.
   */
  matches(password: string, hash: string | null | undefined, client: PasswordClient): Promise<boolean>
}

/**
 * Compared with when there is no hash. It has the same cost, so the response time does not reveal whether an account
 * exists.
 */
const dummyHashOf = (cost: number): string =>
  `$2b$${String(cost).padStart(2, '0')}$aOzKkHEvndINqSflfF2RNecyp4A1QFiuadSzK7S0ce8Nyl2VroOjG`

/** @param settings that differ from those of the service. No variable changes them. */
export function createPasswords(settings: Partial<Settings> = {}, hashing: Hashing = bcrypt): Passwords {
  const { cost, ...bounds } = { ...serviceSettings, ...settings }
  const dummyHash = dummyHashOf(cost)
  const queue = createFairQueue(bounds)

  const enqueue = <Result>({ ip, socket }: PasswordClient, work: () => Promise<Result>): Promise<Result> =>
    queue.run({ name: routedPrefix(ip), connection: socket }, work).catch((error: unknown) => {
      if (!(error instanceof NotStartedError)) throw error
      const seconds = Math.max(1, Math.ceil((error.waiting * hashSeconds) / bounds.runningMax))
      throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': String(seconds) } })
    })

  return {
    hash: (password, client) => enqueue(client, () => hashing.hash(password, cost)),
    matches: async (password, hash, client) => {
      const text = normalize(password)
      const isComparable = isHashable(text)
      const comparedHash = isComparable && hash ? hash : dummyHash
      const isEqual = await enqueue(client, () => hashing.compare(isComparable ? text : '', comparedHash))
      return isEqual && isComparable && Boolean(hash)
    },
  }
}
