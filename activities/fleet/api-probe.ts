/** Asks for the API as relays do: by name, with TLS where the address has it, and over a connection of its own. */
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

const bodyBytesMax = 4096

/**
 * Why a relay could not report to the API; undefined when it could. Never rejects.
 * @param apiUrl as relays get it.
 */
export function probeApi(apiUrl: string, millisMax: number): Promise<string | undefined> {
  const url = new URL(`${apiUrl}/api/v1/relay/health`)
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve) => {
    // A connection that was kept would hide that the name or the certificate has gone.
    const asked = request(url, { agent: false, headers: { accept: 'application/json' } }, (response) => {
      let body = ''
      const finishAnswered = () =>
        finish(isOfApi(response.statusCode, body) ? undefined : `the answer ${response.statusCode} is not the API's`)
      response.setEncoding('utf8').on('end', finishAnswered)
      response.on('data', (text: string) => {
        body += text
        if (body.length > bodyBytesMax) finishAnswered()
      })
    })
    const timeout = setTimeout(() => finish(`no answer within ${millisMax / 1000} s`), millisMax)
    const finish = (problem: string | undefined) => {
      clearTimeout(timeout)
      asked.destroy()
      resolve(problem)
    }
    asked.on('error', (error) => finish(error.message)).end()
  })
}

/** Only the API itself answers that reports are no GET. The page of a proxy or of another host is no path to it. */
function isOfApi(status: number | undefined, body: string): boolean {
  try {
    return status === 405 && (JSON.parse(body) as { error?: { code?: unknown } }).error?.code === 'method_not_allowed'
  } catch {
    return false
  }
}
