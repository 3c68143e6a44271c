/** The token set: the response of every successful sign-in and refresh. */
import { z } from 'zod'
import type { OpenedAuthSession } from './auth-sessions.ts'
import type { Services } from './services.ts'

export const TokenSet = z
  .object({
    cp_access_jwt: z.string(),
    refresh_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int(),
  })
  .meta({ id: 'TokenSet' })

/** For the API reference. */
export const exampleTokenSet: z.infer<typeof TokenSet> = {
  cp_access_jwt: 'eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJ1aWQiOiIwYjlhNmYzZSJ9.signature',
  refresh_token: 'rt_example_5hJk8sQw',
  token_type: 'Bearer',
  expires_in: 720,
}

/** Call it after the transaction that opened or refreshed the auth session has committed. */
export const createTokenSet = async (
  { accessTokens }: Pick<Services, 'accessTokens'>,
  { userId, authSessionId, refreshToken }: OpenedAuthSession,
): Promise<z.infer<typeof TokenSet>> => ({
  cp_access_jwt: await accessTokens.sign({ userId, authSessionId }),
  refresh_token: refreshToken,
  token_type: 'Bearer',
  expires_in: accessTokens.ttlSeconds,
})
