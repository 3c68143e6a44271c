/** What players of a connection see while no stream arrives: how its owner sets it, and the image that relays get. */
import { z } from 'zod'
import type { Database, Sql } from '../../../db/connection.ts'
import { lockUser } from '../../../db/identity/users.ts'
import { findConnection } from '../../../db/relay/connections.ts'
import { deleteSlate, findImageByDigest, findSlate, saveSlate, setOnLoss } from '../../../db/relay/slates.ts'
import { isSlateDigest, onLossModes } from '../../../domain/relay/on-loss.ts'
import { slateBytesMax, slateSideMax } from '../../../domain/relay/slates.ts'
import { present } from '../../http/present.ts'
import { invalidToken, Refusal } from '../../http/refusals.ts'
import { noContent, ok, type Reply } from '../../http/replies.ts'
import { builtInSlate } from '../../slates/built-in-slate.ts'
import { route } from '../route.ts'
import { ConnectionId } from '../schemas.ts'
import { ConnectionView, exampleConnection } from './connections.ts'

const Params = z.object({ name: ConnectionId })
const jpeg = 'image/jpeg'

/**
 * Makes a change of a connection. The account is locked, so that a start of the same moment either sees the change or
 * is seen by it.
 * @param change returns whether it found what it changes.
 */
async function changeConnection(
  sql: Database,
  userId: string,
  name: string,
  change: (tx: Sql) => Promise<boolean>,
): Promise<z.input<typeof ConnectionView>> {
  const row = await sql.begin(async (tx) => {
    if (!(await lockUser(tx, userId))) throw invalidToken()
    if (!(await change(tx))) throw new Refusal('not_found')
    return findConnection(tx, userId, name)
  })
  if (!row) throw new Refusal('not_found')
  return present(ConnectionView, row)
}

export const change = route.user({
  id: 'changeConnection',
  summary: 'Change a connection',
  description:
    'Sets what players see while no stream arrives. The relay of a live session follows with its next report, within seconds. Safe to repeat.',
  params: Params,
  body: z.object({ on_loss: z.enum(onLossModes) }),
  answers: { 200: ConnectionView },
  refuses: ['not_found'],
  examples: {
    requests: { slate: { summary: 'Show a picture', value: { on_loss: 'slate' } } },
    replies: { 200: { changed: { summary: 'The connection', value: exampleConnection } } },
  },
  handle: async ({ caller: { userId }, params: { name }, body }, { sql }) =>
    ok(await changeConnection(sql, userId, name, (tx) => setOnLoss(tx, userId, name, body.on_loss))),
})

export const show = route.user({
  id: 'getSlate',
  summary: 'Get the image of a connection',
  description: 'The image that players of the connection see with `slate`, as it is stored.',
  params: Params,
  answers: { 200: jpeg },
  refuses: ['not_found'],
  handle: async ({ caller, params }, { sql }) => {
    const slate = await findSlate(sql, caller.userId, params.name)
    if (!slate) throw new Refusal('not_found')
    return { ...imageReply(slate.image), headers: { 'Cache-Control': 'private, no-cache' } }
  },
})

export const put = route.user({
  id: 'putSlate',
  summary: 'Set the image of a connection',
  description: `Stores an image in place of a former one. The body is a PNG or JPEG, whatever its content type says, of at most ${slateBytesMax / 1024 / 1024} MiB and ${slateSideMax} × ${slateSideMax} pixels, not animated. It is stored as JPEG of at most 1920 × 1080 pixels without its metadata. The mode stays as it is: set \`on_loss\` to \`slate\` to show it. Safe to repeat.`,
  params: Params,
  bytesMax: slateBytesMax,
  rawBody: {
    contentTypes: ['image/png', jpeg],
    tooLarge: {
      code: 'invalid_image',
      message: `The picture has more than ${slateBytesMax / 1024 / 1024} MB. Save it as JPEG, or with fewer pixels.`,
    },
  },
  answers: { 200: ConnectionView },
  refuses: ['not_found', 'invalid_image'],
  examples: { replies: { 200: { stored: { summary: 'The connection', value: exampleConnection } } } },
  handle: async ({ caller: { userId }, params: { name }, bytes, incoming }, { sql, slateImages }) => {
    // Before the work of decoding.
    if (!(await findConnection(sql, userId, name))) throw new Refusal('not_found')
    const image = await slateImages.encode(bytes, { userId, socket: incoming.socket })
    return ok(await changeConnection(sql, userId, name, (tx) => saveSlate(tx, userId, name, image)))
  },
})

export const remove = route.user({
  id: 'deleteSlate',
  summary: 'Delete the image of a connection',
  description: 'Deletes the image. With `slate` players see the built-in one from then on.',
  params: Params,
  answers: { 204: null },
  refuses: ['not_found'],
  handle: async ({ caller: { userId }, params: { name } }, { sql }) => {
    await changeConnection(sql, userId, name, (tx) => deleteSlate(tx, userId, name))
    return noContent()
  },
})

export const fetchByDigest = route.relay({
  id: 'fetchSlate',
  summary: 'Fetch a slate for a relay',
  description: 'The image that `admission.slate` names. It never changes.',
  params: z.object({
    digest: z.string().refine(isSlateDigest).describe('SHA-256 of the image in hexadecimal digits.'),
  }),
  answers: { 200: jpeg },
  refuses: ['invalid_relay_auth', 'not_found'],
  handle: async ({ params: { digest } }, { sql }) => {
    const builtIn = builtInSlate()
    const image = digest === builtIn.digest ? builtIn.image : await findImageByDigest(sql, digest)
    if (!image) throw new Refusal('not_found')
    return { ...imageReply(image), headers: { 'Cache-Control': 'private, max-age=31536000, immutable' } }
  },
})

const imageReply = (image: Buffer): Reply => ({ status: 200, content: { contentType: jpeg, bytes: image } })
