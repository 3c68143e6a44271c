/** The bitrate of the last ten minutes in the replies to a session's owner and to operators. */
import { z } from 'zod'
import type { RecentBitrateRow } from '../../db/relay/history.ts'
import { listRecentBitrates } from '../../domain/relay/ingest.ts'
import { timestamp } from '../http/schemas.ts'

export const RecentBitrate = z
  .array(z.object({ at: timestamp, kbps: z.int() }))
  .describe(
    'The highest bitrate of each 10 seconds of the last ten minutes, oldest first; of an ended session the last ten minutes before its end.',
  )

export const presentRecentBitrate = ({
  recentBitrateKbps,
  recentSlot,
  untilSeconds,
}: RecentBitrateRow): z.infer<typeof RecentBitrate> =>
  listRecentBitrates({ recentBitrateKbps: recentBitrateKbps ?? [], recentSlot }, untilSeconds).map(({ at, kbps }) => ({
    at: new Date(at * 1000).toISOString(),
    kbps,
  }))
