/**
 * Requests to a provider, each within bounds: of time, of size, of where it may go. Whatever goes beyond them is trouble
 * of the provider's, told in a few words of our own: its answers hold tokens, and errors are logged.
 */
import type { CustomFetch } from 'openid-client'
import { OAuthProviderTrouble } from './provider.ts'

/** Three requests in a row, as the longest sign-in makes them (discovery, token, keys), stay under 10 s. */
const requestMillisMax = 3000
const bodyBytesMax = 64 * 1024

/**
 * @param says the provider's name, for errors.
 * @param issuerUrl where the provider is configured to be: only one at `http:` may be asked without TLS.
 */
export function createBoundedFetch(says: string, issuerUrl: string): CustomFetch {
  const protocols = issuerUrl.startsWith('http:') ? ['http:', 'https:'] : ['https:']

  return async (url, init) => {
    if (!URL.canParse(url) || !protocols.includes(new URL(url).protocol))
      throw new OAuthProviderTrouble(`${says} is not to be asked at such an address`)
    const late = AbortSignal.timeout(requestMillisMax)
    try {
      const response = await fetch(url, { ...(init as RequestInit), redirect: 'manual', signal: late })
      if ((response.status >= 300 && response.status < 400) || response.status >= 500 || response.status === 429) {
        await response.body?.cancel()
        throw new OAuthProviderTrouble(`${says} answered ${response.status}`)
      }
      return await read(says, response)
    } catch (error) {
      if (error instanceof OAuthProviderTrouble) throw error
      throw new OAuthProviderTrouble(late.aborted ? `${says} took too long to answer` : `${says} could not be reached`)
    }
  }
}

/** The same answer, read to its end. Of its headers only the type of the body means anything to us. */
async function read(says: string, response: Response): Promise<Response> {
  const { status, headers } = response
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop breaks the connection off: nothing beyond the limit is waited for.
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > bodyBytesMax) throw new OAuthProviderTrouble(`${says} answered more than ${bodyBytesMax} bytes`)
    chunks.push(chunk)
  }
  const type = headers.get('content-type')
  const body = status === 204 || status === 205 ? null : Buffer.concat(chunks)
  return new Response(body, { status, headers: type ? { 'content-type': type } : {} })
}
