/** The settings of a relay in the formats that streaming software imports. */
import type { Session } from './api-replies.ts'

/** `connect` of a session. Secret: the stream ID is enough to stream to the relay. */
export type Addresses = NonNullable<Session['connect']>

export interface ConnectionKit {
  /** Adds the stream to Moblin, over SRTLA. */
  readonly moblinLink: string
  /** Adds the connection to Larix Broadcaster, over SRT, since it does not support SRTLA. */
  readonly larixLink: string
  /** The same link format for IRL Pro, over SRTLA. IRL Pro documents no format of its own. */
  readonly irlProLink: string
  readonly belabox: { readonly address: string; readonly port: string; readonly streamId: string }
  /** Present where the relay requires encryption. */
  readonly passphrase: string | undefined
  /** The value of the input field of a media source in OBS. Its play key plays and never publishes. */
  readonly obsInput: string
  readonly switcher: SwitcherFields
}

/** What a scene switcher asks for. `OpenIRL` needs the address alone. */
export interface SwitcherFields {
  /** The statistics in the path form, which also works for switchers that leave a query out. */
  readonly statsUrl: string
  readonly publisher: string
}

/** Leaves mobile networks time to retransmit lost packets. */
export const latencyMillis = 2000

/** The name of a relay's connection in the apps. */
export const connectionNameOf = (connectionId: string): string => `Relay ${connectionId}`

/** @param name the name of the connection in the apps. */
export function connectionKit(name: string, addresses: Addresses): ConnectionKit {
  const srtla = parseAddress(addresses.srtla_url)
  const srt = parseAddress(addresses.srt_url)
  const playKey = parseAddress(addresses.player_url).streamId.replace(/^play\/live\//, '')
  const stream = { name, url: addresses.srtla_url, srt: { latency: latencyMillis } }
  return {
    moblinLink: `moblin://?${encodeURIComponent(JSON.stringify({ streams: [stream] }))}`,
    larixLink: groveLink(name, 'srt', srt),
    irlProLink: groveLink(name, 'srtla', srtla),
    belabox: { address: srtla.host.replace(/^\[(.*)\]$/, '$1'), port: srtla.port, streamId: srtla.streamId },
    passphrase: srt.passphrase,
    // OBS passes it to FFmpeg, which expects microseconds.
    obsInput: `${addresses.player_url}&latency=${latencyMillis * 1000}`,
    switcher: { statsUrl: `${addresses.stats_url}/${playKey}`, publisher: playKey },
  }
}

interface Address {
  readonly host: string
  readonly port: string
  readonly streamId: string
  readonly passphrase: string | undefined
}

/** Takes the stream ID verbatim, since the API does not encode it. */
function parseAddress(url: string): Address {
  const [, host, port, streamId, passphrase] =
    /^\w+:\/\/(.+?):(\d+)\?streamid=(.*?)(?:&passphrase=([\w.-]+))?$/s.exec(url) ?? []
  if (host === undefined || port === undefined || streamId === undefined)
    throw new Error('the API returned an address without host, port and streamid')
  return { host, port, streamId, passphrase }
}

/** A Larix Grove link: the app imports its settings after the user agrees. */
const groveLink = (name: string, protocol: string, { host, port, streamId, passphrase }: Address): string =>
  `larix://set/v1?${[
    ['url', `${protocol}://${host}:${port}`],
    ['name', name],
    ['srtstreamid', streamId],
    ['srtlatency', String(latencyMillis)],
    // The key length in bytes belongs to the passphrase.
    ...(passphrase === undefined
      ? []
      : [
          ['srtpass', passphrase],
          ['srtpbkl', '16'],
        ]),
    // Replaces a connection of the same name instead of adding another one.
    ['overwrite', 'on'],
  ]
    .map(([key, value = '']) => `conn[][${key}]=${encodeURIComponent(value)}`)
    .join('&')}`
