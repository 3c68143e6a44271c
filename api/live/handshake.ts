/** The handshake of `GET /relay/ws` (RFC 6455 4.2). What is checked here, the WebSocket library accepts. */
import type { IncomingMessage } from 'node:http'
import { isUpgrade } from '../../platform/http-upgrades.ts'
import { Refusal } from '../http/refusals.ts'

/** The subprotocol that the server selects. */
export const relaySubprotocol = 'svc.relay.v1'

/** Browsers cannot send other credentials with a WebSocket, so the token is offered as a second subprotocol. */
export const readSocketToken = (subprotocols: string | undefined): string | undefined =>
  splitList(subprotocols).find((protocol) => protocol !== relaySubprotocol && protocol !== '')

const splitList = (header = ''): string[] => header.split(',').map((element) => element.trim())

/** Refuses with `invalid_request`. */
export function checkHandshake(request: IncomingMessage): void {
  const { headers } = request
  if (!isUpgrade(request))
    throw new Refusal('invalid_request', {
      message: 'This is a WebSocket endpoint: send an upgrade request.',
      headers: { Upgrade: 'websocket' },
    })
  if (headers['sec-websocket-version'] !== '13')
    throw new Refusal('invalid_request', {
      message: 'The Sec-WebSocket-Version must be 13.',
      headers: { 'Sec-WebSocket-Version': '13' },
    })
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? ''))
    throw new Refusal('invalid_request', { message: 'The Sec-WebSocket-Key is missing or not 16 bytes in base64.' })
  const offered = splitList(headers['sec-websocket-protocol'])
  const isList =
    offered.every((protocol) => /^[\w!#$%&'*+.^`|~-]+$/.test(protocol)) && new Set(offered).size === offered.length
  if (!isList || !offered.includes(relaySubprotocol))
    throw new Refusal('invalid_request', { message: `The client must offer the subprotocol ${relaySubprotocol}.` })
}
