/** An SMTP server in this process, which keeps the mails that it accepts. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { atEnd } from './at-end.ts'
import { localhostCertificate, localhostKey } from './localhost-certificate.ts'

export interface ReceivedMail {
  readonly from: string
  readonly recipients: readonly string[]
  /** The lines before the first empty one, unfolded. */
  readonly headers: readonly string[]
  /** Decoded. */
  readonly text: string
  readonly html: string
  readonly raw: string
  readonly isEncrypted: boolean
  readonly user: string | undefined
}

export interface TestSmtpServer {
  readonly port: number
  /** `smtp://127.0.0.1:<port>`. */
  readonly url: string
  readonly received: readonly ReceivedMail[]
  /** Answers recipients or whole mails with this code until {@link accept}. A server that hangs answers nothing. */
  refuse(step: 'recipient' | 'message', code: number | 'hang', reply?: string): void
  accept(): void
  /** Called before a mail is accepted. */
  beforeAcceptance: (() => Promise<void>) | undefined
  /** Ends the server, as an outage does; `start` continues on the same port. */
  stop(): Promise<void>
  start(): Promise<void>
}

/**
 * Starts a server without sign-in and TLS unless the options say otherwise, and stops it after the tests of the file.
 */
export async function startSmtpServer(options: SMTPServerOptions = {}): Promise<TestSmtpServer> {
  const received: ReceivedMail[] = []
  let refusal: { step: string; code: number | 'hang'; reply: string } | undefined
  let running: SMTPServer | undefined
  let port = 0

  const answer = (step: string, callback: (error?: Error | null) => void) => {
    if (refusal?.step !== step) return callback()
    if (refusal.code === 'hang') return
    callback(Object.assign(new Error(refusal.reply), { responseCode: refusal.code }))
  }
  const server: TestSmtpServer = {
    get port() {
      return port
    },
    get url() {
      return `smtp://127.0.0.1:${port}`
    },
    received,
    refuse: (step, code, reply = 'refused by the test') => {
      refusal = { step, code, reply }
    },
    accept: () => {
      refusal = undefined
    },
    beforeAcceptance: undefined,
    stop: async () => {
      const closed = new Promise<void>((resolve) => running?.close(resolve) ?? resolve())
      for (const connection of running?.connections ?? []) connection.close()
      await closed
      running = undefined
    },
    start: async () => {
      running = new SMTPServer({
        key: localhostKey,
        cert: localhostCertificate,
        authOptional: true,
        disabledCommands: ['STARTTLS'],
        closeTimeout: 100,
        onRcptTo: (_address, _session, callback) => answer('recipient', callback),
        onData: async (stream, session, callback) => {
          const raw = await text(stream)
          await server.beforeAcceptance?.()
          if (refusal?.step === 'message') return answer('message', callback)
          const { mailFrom, rcptTo } = session.envelope
          received.push({
            from: mailFrom ? mailFrom.address : '',
            recipients: rcptTo.map(({ address }) => address),
            ...parseMail(raw),
            isEncrypted: session.secure,
            user: session.user,
          })
          callback()
        },
        ...options,
      })
      running.on('error', () => {})
      running.listen(port, '127.0.0.1')
      await once(running.server, 'listening')
      port = (running.server.address() as AddressInfo).port
    },
  }
  await server.start()
  atEnd(() => server.stop())
  return server
}

function parseMail(raw: string): Pick<ReceivedMail, 'headers' | 'text' | 'html' | 'raw'> {
  const [head = ''] = raw.split('\r\n\r\n')
  const headers = head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1] ?? ''
  const parts = raw.split(`--${boundary}`).slice(1, -1).map(decodePart)
  const partOf = (type: string) => parts.find((part) => part.type === type)?.content ?? ''
  return { headers, text: partOf('text/plain'), html: partOf('text/html'), raw }
}

function decodePart(part: string): { type: string; content: string } {
  const end = part.indexOf('\r\n\r\n')
  const [head, body] = [
    part.slice(0, end),
    part
      .slice(end + 4)
      .replaceAll('\r\n', '\n')
      .trim(),
  ]
  const type = /Content-Type: ([\w/]+)/i.exec(head)?.[1] ?? ''
  const encoding = /Content-Transfer-Encoding: (\S+)/i.exec(head)?.[1]
  if (encoding === 'base64') return { type, content: Buffer.from(body, 'base64').toString() }
  if (encoding !== 'quoted-printable') return { type, content: body }
  const bytes = body
    .replaceAll(/=\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return { type, content: Buffer.from(bytes, 'latin1').toString() }
}
