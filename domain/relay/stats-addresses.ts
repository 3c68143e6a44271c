/** Whether the public statistics of a relay show the addresses of the encoder. */
export const statsAddresses = ['masked', 'full'] as const
export type StatsAddresses = (typeof statsAddresses)[number]
