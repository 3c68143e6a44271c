/** Apps that accounts connect: programs with tokens of their own, for parts of the API. */

export const appScopes = ['ingests:read', 'relay:read', 'relay:control'] as const
export type AppScope = (typeof appScopes)[number]

export interface App {
  readonly clientId: string
  readonly name: string
  /** What the app may ask for. */
  readonly scopes: readonly AppScope[]
}

/** Public clients: their ids are not secret, and each runs on the machine of its user. */
export const apps: readonly App[] = [
  { clientId: 'obs-irl-source', name: 'OBS source (IRL)', scopes: ['ingests:read'] },
  { clientId: 'obs-relay-control', name: 'OBS script', scopes: appScopes },
]

/** The app that documents of the provider name. */
export const sourceApp = 'obs-irl-source'

export const findApp = (clientId: string): App | undefined => apps.find((app) => app.clientId === clientId)

/** The name of an app, also of one that this version does not have. */
export const nameOfApp = (clientId: string): string => findApp(clientId)?.name ?? clientId

const firstPort = 47_420
const ports = 10

/** Where apps listen for the browser that comes back from the approval. */
export const appRedirectUris: readonly string[] = Array.from(
  { length: ports },
  (_, index) => `http://127.0.0.1:${firstPort + index}/callback`,
)

/** The known scopes of a text in which they are separated by spaces, in their own order. */
export const parseScopes = (text: string): AppScope[] => {
  const named = text.split(' ')
  return appScopes.filter((scope) => named.includes(scope))
}

/** Whether a refresh token may be exchanged, by its generation in the grant and by when that changed last. */
export function isRefreshTokenUsable(
  token: number,
  grant: { readonly generation: number; readonly rotatedSecondsAgo: number | null },
): boolean {
  if (token === grant.generation) return true
  const { rotatedSecondsAgo } = grant
  return token === grant.generation - 1 && rotatedSecondsAgo !== null && rotatedSecondsAgo < replacedTokenSeconds
}

/** How long a replaced refresh token can be exchanged again: two requests may use the same one. */
export const replacedTokenSeconds = 15
