/** What streaming software wants to know of a relay, each in its own words. Addresses in, texts out. */

/** `connect` of a session, as the api tells its owner. All of it is secret: the stream id lets anybody stream. */
export interface Addresses {
  readonly srtla_url: string
  readonly srt_url: string
  readonly player_url: string
  readonly stats_url: string
}

export interface ConnectionKit {
  /** Adds the stream to Moblin, over SRTLA. */
  readonly moblinLink: string
  /** Adds the connection to Larix Broadcaster, over SRT: it knows no SRTLA. */
  readonly larixLink: string
  /** The same for IRL Pro, which reads links of this kind too, over SRTLA. It documents no link of its own. */
  readonly irlProLink: string
  readonly belabox: { readonly address: string; readonly port: string; readonly streamId: string }
  /** What goes into the input field of a media source of OBS. */
  readonly obsInput: string
}

/** Long enough for mobile networks to send again what got lost, in milliseconds as phone apps count. */
export const latencyMillis = 2000

/** @param name what the apps call the connection. */
export function connectionKit(name: string, addresses: Addresses): ConnectionKit {
  const srtla = parts(addresses.srtla_url)
  const srt = parts(addresses.srt_url)
  const stream = { name, url: addresses.srtla_url, srt: { latency: latencyMillis } }
  return {
    moblinLink: `moblin://?${encodeURIComponent(JSON.stringify({ streams: [stream] }))}`,
    larixLink: groveLink(name, `srt://${srt.host}:${srt.port}`, srt.streamId),
    irlProLink: groveLink(name, `srtla://${srtla.host}:${srtla.port}`, srtla.streamId),
    belabox: { address: srtla.host.replace(/^\[(.*)\]$/, '$1'), port: srtla.port, streamId: srtla.streamId },
    // OBS hands it to ffmpeg, which counts in microseconds.
    obsInput: `${addresses.player_url}&latency=${latencyMillis * 1000}`,
  }
}

/** The stream id is taken as it stands: nothing in it was encoded. */
function parts(url: string): { host: string; port: string; streamId: string } {
  const [, host, port, streamId] = /^\w+:\/\/(.+?):(\d+)\?streamid=(.*)$/s.exec(url) ?? []
  if (host === undefined || port === undefined || streamId === undefined)
    throw new Error('the api named an address of another shape than it promises')
  return { host, port, streamId }
}

/** Larix' own way of handing settings on: a link that the app imports when its owner agrees. */
const groveLink = (name: string, url: string, streamId: string): string =>
  `larix://set/v1?${[
    ['url', url],
    ['name', name],
    ['srtstreamid', streamId],
    ['srtlatency', String(latencyMillis)],
    // Without it every import adds one more of the same name.
    ['overwrite', 'on'],
  ]
    .map(([key, value = '']) => `conn[][${key}]=${encodeURIComponent(value)}`)
    .join('&')}`
