/** What the OBS source reads: the connections of an account, and an address to play each from. */
import { z } from 'zod'
import { isGrantAlive } from '../../../db/identity/app-grants.ts'
import { lockUser } from '../../../db/identity/users.ts'
import { listIngestConnections } from '../../../db/relay/ingests.ts'
import { ensureAppPlayKey, findAppPlayKey, type PlayKeyRow } from '../../../db/relay/play-keys.ts'
import { openPlayKey } from '../../../db/sealed-tokens.ts'
import { nameOfApp } from '../../../domain/identity/apps.ts'
import type { AppCaller } from '../../apps/app-access-tokens.ts'
import { invalidToken, Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import type { Services } from '../../services.ts'
import { findPlayAddress, IngestView, ingestIdOf, playUrlOf, presentIngestConnection } from '../../views/ingest-list.ts'
import { route } from '../route.ts'

const flatErrors =
  'Errors of this operation are flat, as those of OAuth: `{"error":"…","error_description":"…"}`, with the codes of other operations except `invalid_token` and `server_error`.'

export const list = route.app({
  id: 'listIngests',
  summary: 'List the ingests for the OBS source',
  description: `One entry for each connection of the account, the one that was used last first. The list has no pages and no secrets.\n\n${flatErrors}`,
  answers: { 200: z.object({ ingests: z.array(IngestView) }) },
  refuses: ['insufficient_scope'],
  errors: 'flat',
  handle: async ({ caller }, services) => {
    const { config } = services
    const [key, rows] = await Promise.all([
      playKeyOf(caller, services),
      listIngestConnections(services.sql, caller.userId),
    ])
    return ok({
      ingests: rows.map((row) =>
        presentIngestConnection(row, ingestIdOf(row.label, findPlayAddress(row, config), key.id), config),
      ),
    })
  },
})

export const resolve = route.app({
  id: 'resolveIngest',
  summary: 'Get the address to play an ingest from',
  description: `An SRT address with the app's play key, which stays valid over sessions as long as the id does. 404 for an id that is not in the list any more, and while the address is not known because no relay runs.\n\n${flatErrors}`,
  params: z.object({
    id: z
      .string()
      .regex(/^[A-Za-z0-9._:-]{1,128}$/)
      .describe('The id of the ingest.'),
  }),
  answers: { 200: z.object({ url: z.string() }) },
  refuses: ['insufficient_scope', 'not_found'],
  errors: 'flat',
  secret: true,
  handle: async ({ caller, params }, services) => {
    const { config, sealing } = services
    const [key, rows] = await Promise.all([
      playKeyOf(caller, services),
      listIngestConnections(services.sql, caller.userId),
    ])
    for (const row of rows) {
      const address = findPlayAddress(row, config)
      if (address && ingestIdOf(row.label, address, key.id) === params.id)
        return ok({ url: playUrlOf(address, openPlayKey(sealing, key), config.relay.srtPassphrase) })
    }
    throw new Refusal('not_found', { message: 'No relay of this connection runs, or its address has changed.' })
  },
})

/**
 * The key that the addresses of the app contain, the same for all its sign-ins. It is made at the first request, with
 * the account locked, so that an app which is being disconnected leaves none behind. Refuses with `unauthorized`.
 */
async function playKeyOf({ userId, clientId, grantId }: AppCaller, { sql, sealing }: Services): Promise<PlayKeyRow> {
  const known = await findAppPlayKey(sql, userId, clientId)
  if (known) return known
  return (await sql.begin(async (tx) => {
    await lockUser(tx, userId)
    if (!(await isGrantAlive(tx, { userId, grantId }))) throw invalidToken()
    await ensureAppPlayKey(tx, sealing, userId, { id: clientId, name: nameOfApp(clientId) })
    const made = await findAppPlayKey(tx, userId, clientId)
    if (!made) throw new Error('the play key that was just made does not exist')
    return made
  })) as PlayKeyRow
}
