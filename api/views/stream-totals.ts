/** What a session has received in all. */
import { z } from 'zod'

export const StreamTotals = z.object({
  seconds_publishing: z.int().describe('The time in which the relay received data, without gaps of more than 3 s.'),
  bytes_received: z.int(),
  average_bitrate_kbps: z
    .int()
    .nullable()
    .describe('Over the time in which the relay received data; at most the peak. Null when it received none.'),
  peak_bitrate_kbps: z.int().describe('The highest bitrate of a second or a little more.'),
})
