/** The configuration of oidc-provider: two public clients, authorization codes with PKCE, and nothing else. */
import { hkdfSync } from 'node:crypto'
import type { Configuration, errors, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import { findGrantableAccount } from '../../db/identity/app-accounts.ts'
import { appRedirectUris, appScopes, apps, parseScopes } from '../../domain/identity/apps.ts'
import {
  appAccessTokenSeconds,
  appCodeSeconds,
  appRefreshTokenDays,
  appRequestSeconds,
} from '../../domain/identity/lifetimes.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { appAudience } from './app-access-tokens.ts'
import { requestPageOf } from './app-addresses.ts'
import { createAdapterFactory } from './provider-adapter.ts'
import { currentContext } from './provider-context.ts'
import { renderProviderError } from './provider-errors.ts'

/** The cookie that binds a request to its browser. The library has others, which are not sent. */
export const requestCookie = 'svc_app_request'

interface Library {
  readonly errors: typeof errors
  readonly interactionPolicy: typeof interactionPolicy
}

type ProviderConfig = Pick<Config, 'apiUrl' | 'siteUrl' | 'brandName' | 'jwt'>

export function createProviderConfiguration(
  { errors, interactionPolicy }: Library,
  config: ProviderConfig,
  { signingKeys }: NonNullable<Config['apps']>,
  sealing: Sealing,
): Configuration {
  const resource = `${config.apiUrl}/api/v1`
  const off = { enabled: false }
  const cookie = { httpOnly: true, sameSite: 'lax', signed: true, overwrite: true } as const
  return {
    adapter: createAdapterFactory(sealing, resource),
    jwks: { keys: [...signingKeys] },
    clients: apps.map(({ clientId, name, scopes }) => ({
      client_id: clientId,
      client_name: name,
      // Not `native`, whose loopback addresses match with any port.
      application_type: 'web',
      redirect_uris: [...appRedirectUris],
      response_types: ['code'],
      response_modes: ['query'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
      id_token_signed_response_alg: 'ES256',
      scope: scopes.join(' '),
    })),
    clientAuthMethods: ['none'],
    responseTypes: ['code'],
    pkce: { required: () => true },
    scopes: [...appScopes],
    claims: {},
    cookies: {
      keys: cookieKeys(config),
      names: { session: 'svc_app_session', interaction: 'svc_app_interaction', resume: requestCookie },
      short: cookie,
      long: cookie,
    },
    features: {
      devInteractions: off,
      userinfo: off,
      rpInitiatedLogout: off,
      dPoP: off,
      pushedAuthorizationRequests: off,
      claimsParameter: off,
      revocation: { enabled: true, allowedPolicy: (_, client, token) => token.clientId === client.clientId },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, identifier) => {
          if (identifier !== resource) throw new errors.InvalidTarget()
          return {
            scope: appScopes.join(' '),
            audience: appAudience,
            accessTokenTTL: appAccessTokenSeconds,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'ES256' } },
          }
        },
      },
    },
    // The API checks it with each request: an access token ends with its grant.
    extraTokenClaims: (_, token) => ('grantId' in token ? { gid: token.grantId } : {}),
    findAccount: async (_, userId) =>
      (await findGrantableAccount(currentContext().sql, userId))
        ? { accountId: userId, claims: async () => ({ sub: userId }) }
        : undefined,
    interactions: {
      policy: [approvalOf(interactionPolicy)],
      url: (_, { uid, params }) => {
        if (parseScopes(String(params.scope ?? '')).length === 0)
          throw new errors.InvalidScope('the request names no scope of this service', String(params.scope ?? ''))
        return requestPageOf(config, uid)
      },
    },
    loadExistingGrant: async (ctx) => {
      const grantId = approvedGrantId(ctx)
      return grantId === undefined ? undefined : ctx.oidc.provider.Grant.find(grantId)
    },
    // Clients ask for the scopes alone, without `offline_access`.
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    revokeGrantPolicy: () => true,
    expiresWithSession: () => false,
    clientBasedCORS: () => false,
    ttl: {
      AccessToken: appAccessTokenSeconds,
      AuthorizationCode: appCodeSeconds,
      Interaction: appRequestSeconds,
      RefreshToken: appRefreshTokenDays * 86_400,
      Grant: appRefreshTokenDays * 86_400,
      Session: appRequestSeconds,
      IdToken: appAccessTokenSeconds,
    },
    renderError: (ctx, out) => renderProviderError(ctx, out, config.brandName),
  }
}

const approvedGrantId = ({ oidc }: KoaContextWithOIDC): string | undefined => oidc.result?.consent?.grantId

/** Each request needs an approval of its own, also of a user who has approved the app before. */
const approvalOf = ({ Prompt, Check }: Library['interactionPolicy']) =>
  new Prompt(
    { name: 'consent', requestable: true },
    new Check('approval_required', 'The user has to approve the app.', 'consent_required', (ctx) =>
      approvedGrantId(ctx) === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT,
    ),
  )

/** All processes have the same ones. The first one signs. */
const cookieKeys = ({ jwt }: ProviderConfig): string[] =>
  [jwt.secret, jwt.previousSecret].flatMap((secret) =>
    secret === undefined
      ? []
      : [
          Buffer.from(hkdfSync('sha256', secret, '', 'relay-control-plane app request cookie v1', 32)).toString(
            'base64url',
          ),
        ],
  )
