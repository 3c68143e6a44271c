/**
 * HTTP requests to a provider, limited in time, response size and target. A request beyond a limit fails with an
 * {@link OAuthProviderError} whose message contains no response data: responses contain tokens, and errors are logged.
 */
import type { CustomFetch } from 'openid-client'
import { OAuthProviderError } from './provider.ts'

/** The longest sign-in makes three requests in sequence (discovery, token, keys) and stays under 10 s. */
const requestMillisMax = 3000
const bodyBytesMax = 64 * 1024

/**
 * @param providerName for error messages.
 * @param issuerUrl the configured URL of the provider: requests without TLS are allowed only if it starts with `http:`.
 */
export function createBoundedFetch(providerName: string, issuerUrl: string): CustomFetch {
  const protocols = issuerUrl.startsWith('http:') ? ['http:', 'https:'] : ['https:']

  return async (url, init) => {
    if (!URL.canParse(url) || !protocols.includes(new URL(url).protocol))
      throw new OAuthProviderError(`${providerName} names an endpoint that is not an HTTPS URL`)
    const timeout = AbortSignal.timeout(requestMillisMax)
    try {
      const response = await fetch(url, { ...(init as RequestInit), redirect: 'manual', signal: timeout })
      if ((response.status >= 300 && response.status < 400) || response.status >= 500 || response.status === 429) {
        await response.body?.cancel()
        throw new OAuthProviderError(`${providerName} answered ${response.status}`)
      }
      return await readResponse(providerName, response)
    } catch (error) {
      if (error instanceof OAuthProviderError) throw error
      throw new OAuthProviderError(
        timeout.aborted
          ? `${providerName} did not answer within ${requestMillisMax / 1000} s`
          : `${providerName} could not be reached`,
      )
    }
  }
}

/** Reads the whole body up to the limit. Keeps only the content type of the headers. */
async function readResponse(providerName: string, response: Response): Promise<Response> {
  const { status, headers } = response
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Throwing out of the loop closes the connection.
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > bodyBytesMax) throw new OAuthProviderError(`${providerName} answered more than ${bodyBytesMax} bytes`)
    chunks.push(chunk)
  }
  const type = headers.get('content-type')
  const body = status === 204 || status === 205 ? null : Buffer.concat(chunks)
  return new Response(body, { status, headers: type ? { 'content-type': type } : {} })
}
