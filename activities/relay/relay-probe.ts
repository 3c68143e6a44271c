/** Asks a relay whether it runs: `GET /healthz` on its statistics port. */
import { lookup } from 'node:dns/promises'
import { request } from 'node:http'
import { isIP } from 'node:net'
import { isPublicAddress } from '../../providers/webhooks/endpoint-rules.ts'

export interface ProbeTarget {
  readonly instanceId: string | null
  readonly host: string
  readonly statsPort: number
}

/** `refused`: its host is there, and nothing listens on the port. `nothing`: no answer, or another one. */
export type ProbeAnswer = 'answered' | 'refused' | 'nothing'

const answerMillisMax = 1_000
const answerBytesMax = 1_024

interface ProbeOptions {
  /** Whether loopback, private and link-local addresses are probed as well. */
  readonly arePrivateAllowed: boolean
}

/** Follows no redirect, and reads at most 1 KB within a second. Never rejects. */
export async function probeRelay(target: ProbeTarget, { arePrivateAllowed }: ProbeOptions): Promise<ProbeAnswer> {
  const address = await addressOf(target.host)
  if (address === undefined || (!arePrivateAllowed && !isPublicAddress(address))) return 'nothing'
  return await ask(target, address)
}

/** The name is looked up once, so that what is checked is what is connected to. */
const addressOf = async (host: string): Promise<string | undefined> =>
  isIP(host) !== 0 ? host : (await lookup(host).catch(() => undefined))?.address

const ask = ({ instanceId, statsPort }: ProbeTarget, address: string): Promise<ProbeAnswer> =>
  new Promise((resolve) => {
    const asked = request({ host: address, port: statsPort, path: '/healthz', agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        body += text
        if (body.length > answerBytesMax) finish('nothing')
      })
      response.on('end', () => finish(response.statusCode === 200 && isOf(body, instanceId) ? 'answered' : 'nothing'))
    })
    const finish = (answer: ProbeAnswer) => {
      clearTimeout(timeout)
      asked.destroy()
      resolve(answer)
    }
    const timeout = setTimeout(() => finish('nothing'), answerMillisMax)
    asked.on('error', (error: NodeJS.ErrnoException) => finish(error.code === 'ECONNREFUSED' ? 'refused' : 'nothing'))
    asked.end()
  })

/** Another relay may have got the address since. */
function isOf(body: string, instanceId: string | null): boolean {
  try {
    return instanceId !== null && (JSON.parse(body) as { instance_id?: unknown }).instance_id === instanceId
  } catch {
    return false
  }
}
