/** The addresses of the provider for apps. Apps store them at their sign-in, so they never change. */
import { sourceApp } from '../../domain/identity/apps.ts'
import type { Config } from '../../platform/config/config.ts'

/** The path of the issuer below the address of the api. */
export const issuerPath = '/oauth'

export const issuerOf = ({ apiUrl }: Pick<Config, 'apiUrl'>): string => apiUrl + issuerPath

/** The page of the site where a user decides about a request. */
export const requestPageOf = ({ siteUrl }: Pick<Config, 'siteUrl'>, requestId: string): string =>
  `${siteUrl}/connect/${requestId}`

/** Where the browser continues to the app after the decision. */
export const continueUrlOf = (config: Pick<Config, 'apiUrl'>, requestId: string, ticket: string): string =>
  `${issuerOf(config)}/auth/${requestId}?ticket=${ticket}`

export const sourceDocumentPath = '/.well-known/irl-source-provider.json'

/** The document by which the OBS source finds this service; undefined where no apps can be connected. */
export const sourceDocumentOf = (config: Pick<Config, 'apiUrl' | 'apps' | 'brandName'>): object | undefined =>
  config.apps === null
    ? undefined
    : {
        protocol_version: 1,
        id: config.apps.providerId,
        name: config.brandName,
        issuer: issuerOf(config),
        client_id: sourceApp,
        scope: 'ingests:read',
        ingests_endpoint: `${config.apiUrl}/api/v1/ingests`,
      }
