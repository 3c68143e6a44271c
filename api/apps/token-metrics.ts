/** Metrics of the requests of apps for tokens. */
import { Counter, type Registry } from 'prom-client'

export interface TokenMetrics {
  /** @param outcome `issued`, or the code of the error. */
  count(grantType: string, outcome: string): void
}

const grantTypes = new Set(['authorization_code', 'refresh_token'])

export function createTokenMetrics(registry: Registry): TokenMetrics {
  const requests = new Counter({
    name: 'svc_app_token_requests_total',
    help: 'Requests of apps for tokens by grant type and outcome.',
    labelNames: ['grant_type', 'outcome'],
    registers: [registry],
  })
  return {
    // Clients choose the text, so others share one label.
    count: (grantType, outcome) =>
      requests.inc({ grant_type: grantTypes.has(grantType) ? grantType : 'other', outcome }),
  }
}
