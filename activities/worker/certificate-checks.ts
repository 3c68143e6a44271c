/** Reads the certificates of the public addresses, as a client receives them. */
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { CertificateCheck } from '../../db/operations/certificate-checks.ts'

const checkMillisMax = 10_000

/** Never rejects. An address that does not answer, or whose certificate clients refuse, has an `error`. */
export function checkCertificate(url: URL, millisMax = checkMillisMax): Promise<CertificateCheck> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    // An invalid certificate is read too, since its end is shown.
    const socket = connect({
      host,
      port: Number(url.port || 443),
      ...(isIP(host) ? {} : { servername: host }),
      rejectUnauthorized: false,
    })
    const finish = (check: CertificateCheck) => {
      socket.destroy()
      resolve(check)
    }
    socket.setTimeout(millisMax, () => finish({ expiresAt: null, error: `no answer within ${millisMax / 1000} s` }))
    socket.on('error', (error) => finish({ expiresAt: null, error: error.message }))
    socket.on('secureConnect', () => {
      const { valid_to } = socket.getPeerCertificate()
      const expiresAt = valid_to ? new Date(valid_to) : null
      finish({ expiresAt, error: socket.authorized ? null : String(socket.authorizationError) })
    })
  })
}
