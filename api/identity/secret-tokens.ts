/** Secret tokens: refresh, poll, merge and mailed tokens, OAuth state and binding. Only their hashes are stored. */
import { createHash, randomBytes } from 'node:crypto'

/** 256 random bits in base64url. */
export const createSecretToken = (): string => randomBytes(32).toString('base64url')

export const hashSecretToken = (token: string): Buffer => createHash('sha256').update(token).digest()
