/** Play keys: secrets that admit players only, for scenes, switchers and people who must not publish. */
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import { findPlayAccess, setPlayAccess } from '../../../db/identity/play-access.ts'
import { lockUser } from '../../../db/identity/users.ts'
import { hasConnection } from '../../../db/relay/connections.ts'
import {
  createPlayKey,
  deletePlayKey,
  ensureConnectionPlayKey,
  insertOwnPlayKey,
  listPlayKeys,
  type PlayKeyRow,
} from '../../../db/relay/play-keys.ts'
import { openPlayKey } from '../../../db/sealed-tokens.ts'
import { ownPlayKeysMax, playKeyKinds, playKeyNameLengthMax } from '../../../domain/relay/play-keys.ts'
import type { Sealing } from '../../../platform/sealing.ts'
import { present } from '../../http/present.ts'
import { invalidToken, Refusal } from '../../http/refusals.ts'
import { created, noContent, ok } from '../../http/replies.ts'
import { id, storableText, timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'
import { ConnectionId } from '../schemas.ts'

const PlayKeyView = z
  .object({
    id,
    name: z.string(),
    connection_id: z.string().nullable().describe('The connection whose relays it opens; null for all of them.'),
    kind: z
      .enum(playKeyKinds)
      .describe(
        '`own`: made by the owner. `connection`: the one in `connect.player_url` of the sessions of a connection; deleting it replaces it. `app`: that of a connected app.',
      ),
    key: z.string().describe('22 characters, safe in URLs.'),
    created_at: timestamp,
    last_used_at: timestamp.nullable().describe('When a player used it last, to the minute.'),
  })
  .meta({ id: 'PlayKey' })

const presentPlayKey = (sealing: Sealing, row: PlayKeyRow): z.infer<typeof PlayKeyView> =>
  present(PlayKeyView, { ...row, key: openPlayKey(sealing, row) })

const examplePlayKey = {
  id: '5a0b8c1e-2d3f-4a69-8b7c-9d0e1f2a3b4c',
  name: 'Studio PC',
  connection_id: null,
  kind: 'own',
  key: 'play_key_example_4fGh9',
  created_at: '2026-08-01T18:30:00.000Z',
  last_used_at: null,
}

export const list = route.user({
  id: 'listPlayKeys',
  summary: 'List the play keys',
  description:
    'The play keys of the account. A key admits players to the relays of the account, as `play/live/<key>` or `#!::r=live/<key>,m=request`, and never publishes. The key is also the path of statistics for a scene switcher: `/stats/<key>` on the statistics port of the relay.',
  answers: { 200: z.object({ play_keys: z.array(PlayKeyView), play_with_keys_only: z.boolean() }) },
  refuses: [],
  secret: true,
  examples: {
    replies: {
      200: { keys: { summary: 'One key', value: { play_keys: [examplePlayKey], play_with_keys_only: false } } },
    },
  },
  handle: async ({ caller: { userId } }, { sql, sealing }) => {
    const [rows, playWithKeysOnly] = await Promise.all([listPlayKeys(sql, userId), findPlayAccess(sql, userId)])
    return ok({ play_keys: rows.map((row) => presentPlayKey(sealing, row)), play_with_keys_only: playWithKeysOnly })
  },
})

export const create = route.user({
  id: 'createPlayKey',
  summary: 'Create a play key',
  description: `Creates a key for players. Running relays admit it within seconds. An account has at most ${ownPlayKeysMax} of its own.`,
  secret: true,
  body: z.object({
    name: storableText(playKeyNameLengthMax)
      .refine((name) => name.trim() !== '', 'must not be blank')
      .describe('For its owner and for operators, who do not see the key.'),
    connection_id: ConnectionId.nullable()
      .optional()
      .describe('A connection of the account whose relays the key opens; all of them without it.'),
  }),
  answers: { 201: PlayKeyView },
  refuses: ['not_found', 'play_key_limit'],
  examples: {
    requests: {
      all: { summary: 'For all relays', value: { name: 'Studio PC' } },
      connection: { summary: 'For one connection', value: { name: 'Friend', connection_id: 'default' } },
    },
    replies: { 201: { created: { summary: 'The new key', value: examplePlayKey } } },
  },
  handle: async ({ body: { name, connection_id: connectionId = null }, caller: { userId }, ip }, { sql, sealing }) => {
    const row = await sql.begin(async (tx) => {
      if (!(await lockUser(tx, userId))) throw invalidToken()
      if (connectionId !== null && !(await hasConnection(tx, userId, connectionId)))
        throw new Refusal('not_found', { message: 'The account has no connection of this name.' })
      const inserted = await insertOwnPlayKey(tx, userId, createPlayKey(sealing), { name: name.trim(), connectionId })
      if (inserted === 'limit_reached') throw new Refusal('play_key_limit')
      await recordAuditEntry(tx, {
        initiator: 'user',
        action: 'play_key_created',
        userId,
        ip,
        detail: { name: inserted.name },
      })
      return inserted
    })
    return created(presentPlayKey(sealing, row))
  },
})

export const remove = route.user({
  id: 'deletePlayKey',
  summary: 'Delete a play key',
  description:
    'Deletes a key. Its players are disconnected within seconds. The key of a connection is replaced by a new one, and that of a connected app when the app asks for an address again.',
  params: z.object({ id }),
  answers: { 204: null },
  refuses: ['not_found'],
  handle: async ({ params, caller: { userId }, ip }, { sql, sealing }) => {
    await sql.begin(async (tx) => {
      await lockUser(tx, userId)
      const deleted = await deletePlayKey(tx, userId, params.id)
      if (!deleted) throw new Refusal('not_found')
      if (deleted.kind === 'connection' && deleted.connectionId !== null)
        await ensureConnectionPlayKey(tx, userId, deleted.connectionId, createPlayKey(sealing))
      await recordAuditEntry(tx, {
        initiator: 'user',
        action: 'play_key_deleted',
        userId,
        ip,
        detail: { name: deleted.name },
      })
    })
    return noContent()
  },
})

const PlayAccess = z.object({
  play_with_keys_only: z.boolean().describe('Whether players need a play key: the stream token then publishes only.'),
})

export const setAccess = route.user({
  id: 'setPlayAccess',
  summary: 'Set who may play',
  description:
    'Sets whether the stream token admits players beside publishing, which is the default. When it does not, players that use it are disconnected within seconds. Safe to repeat.',
  body: PlayAccess,
  answers: { 200: PlayAccess },
  refuses: [],
  handle: async ({ body: { play_with_keys_only: playWithKeysOnly }, caller: { userId }, ip }, { sql }) => {
    await sql.begin(async (tx) => {
      await lockUser(tx, userId)
      if (!(await setPlayAccess(tx, userId, playWithKeysOnly))) return
      const action = playWithKeysOnly ? 'play_with_keys_only_enabled' : 'play_with_keys_only_disabled'
      await recordAuditEntry(tx, { initiator: 'user', action, userId, ip })
    })
    return ok({ play_with_keys_only: playWithKeysOnly })
  },
})
