/** The connections of an account: the names that relays are started for. */
import { z } from 'zod'
import { deleteConnection, listConnections } from '../../../db/relay/connections.ts'
import { connectionsMax } from '../../../domain/relay/connections.ts'
import { onLossModes } from '../../../domain/relay/on-loss.ts'
import { present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { noContent, ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'
import { ConnectionId } from '../schemas.ts'

export const ConnectionView = z
  .object({
    name: z.string(),
    session_id: id.nullable().describe('The live session of the connection; null when it has none.'),
    created_at: timestamp,
    last_used_at: timestamp.describe('The last start of a relay for it.'),
    on_loss: z
      .enum(onLossModes)
      .describe(
        'What players see while no stream arrives. `hold`: nothing is sent. `freeze`: the last picture again, with silence. `slate`: an image, with silence.',
      ),
    slate: z
      .string()
      .nullable()
      .describe(
        'SHA-256 of its own image in hexadecimal digits; null when it has none, and the built-in one is shown.',
      ),
  })
  .meta({ id: 'Connection' })

export const exampleConnection = {
  name: 'default',
  session_id: null,
  created_at: '2026-08-01T18:30:00.000Z',
  last_used_at: '2026-08-01T18:30:00.000Z',
  on_loss: 'slate',
  slate: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
}

export const list = route.userOrApp({
  id: 'listConnections',
  summary: 'List the connections',
  description: `The connections of the account, the one that was used last first. A connection is made by the first start of a relay for its name. An account has at most ${connectionsMax}.`,
  answers: { 200: z.object({ connections: z.array(ConnectionView) }) },
  refuses: [],
  handle: async ({ caller }, { sql }) => {
    const rows = await listConnections(sql, caller.userId)
    return ok({ connections: rows.map((row) => present(ConnectionView, row)) })
  },
})

export const remove = route.user({
  id: 'deleteConnection',
  summary: 'Delete a connection',
  description:
    'Deletes a connection without a live session, with its play keys and its image. Its ended sessions stay. A later start for the same name makes a new connection, which may have other addresses.',
  params: z.object({ name: ConnectionId }),
  answers: { 204: null },
  refuses: ['not_found', 'connection_in_use'],
  handle: async ({ caller, params }, { sql }) => {
    const outcome = await sql.begin((tx) => deleteConnection(tx, caller.userId, params.name))
    if (outcome === 'not_found') throw new Refusal('not_found')
    if (outcome === 'in_use') throw new Refusal('connection_in_use')
    return noContent()
  },
})
