/** Pairing: a phone encoder fetches its settings with the pair token of a relay session, without the account. */
import { z } from 'zod'
import { findSessionByToken } from '../../../db/relay/sessions.ts'
import { openStreamToken, sessionTokenHashes } from '../../../db/sealed-tokens.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { connectionKit } from '../../views/relay-session.ts'
import { route } from '../route.ts'

export const pair = route.none({
  id: 'getPairedAddresses',
  summary: 'Get the addresses to publish to',
  description:
    'Gives an encoder, such as a phone, the addresses to publish to without the account. 503 until the relay has an address: repeat after `Retry-After`. 404 for a wrong token and for an ended session alike.',
  requestHeaders: {
    'X-Pair-Token': { description: 'The `pair_token` of a live relay session.', example: 'pair_example_3sKd7fGh' },
  },
  answers: { 200: z.object({ srtla_url: z.string(), srt_url: z.string() }) },
  refuses: ['not_found', 'temporarily_unavailable'],
  secret: true,
  handle: async ({ header }, { sql, sealing, config }) => {
    const token = header('x-pair-token') ?? ''
    const session = await findSessionByToken(sql, 'pair_token', sessionTokenHashes(sealing, 'pair_token', token))
    // The same for a missing, malformed, unknown and ended token.
    if (!session) throw new Refusal('not_found', { message: 'No live relay session has this pair token.' })
    const streamToken = openStreamToken(sealing, session.userId, session)
    const { relayAuthSecrets, relay } = config
    const kit = connectionKit(session, { sealing, streamToken, srtPassphrase: relay.srtPassphrase, relayAuthSecrets })
    if (!kit)
      throw new Refusal('temporarily_unavailable', {
        message: 'The relay is starting. Try again in a few seconds.',
        headers: { 'Retry-After': '2' },
      })
    const { srtla_url, srt_url } = kit
    return ok({ srtla_url, srt_url })
  },
})
