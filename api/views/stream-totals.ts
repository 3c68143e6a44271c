/** What a session has received in all. */
import { z } from 'zod'
import { type StoredTotals, shownTotals } from '../../domain/relay/ingest-totals.ts'

export const StreamTotals = z.object({
  seconds_publishing: z.int().describe('The time in which the relay received data, without gaps of more than 3 s.'),
  bytes_received: z.int(),
  average_bitrate_kbps: z
    .int()
    .nullable()
    .describe('Over the time in which the relay received data; at most the peak. Null when it received none.'),
  peak_bitrate_kbps: z.int().describe('The highest bitrate of a second or a little more.'),
})

export const presentStreamTotals = (row: StoredTotals): z.infer<typeof StreamTotals> => {
  const { secondsPublishing, averageBitrateKbps } = shownTotals(row)
  return {
    seconds_publishing: secondsPublishing,
    bytes_received: row.bytesReceived,
    average_bitrate_kbps: averageBitrateKbps,
    peak_bitrate_kbps: row.peakBitrateKbps,
  }
}
