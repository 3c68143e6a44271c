import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Addresses, connectionKit } from '../../web/connection-kit.ts'

const addressesAt = (host: string, token = 'a1b2c3d4'): Addresses => ({
  srtla_url: `srtla://${host}:5000?streamid=publish/live/${token}`,
  srt_url: `srt://${host}:4001?streamid=publish/live/${token}`,
  player_url: `srt://${host}:4000?streamid=play/live/${token}`,
  stats_url: `http://${host}:5080/stats`,
})

/** What Moblin makes of its link. */
const moblinReads = (link: string) =>
  JSON.parse(decodeURIComponent(link.replace(/^moblin:\/\/\?/, ''))) as { streams: Record<string, unknown>[] }

/** What Larix makes of its link, as a browser's rules for queries have it. */
const groveReads = (link: string) => Object.fromEntries(new URL(link).searchParams)

test('Moblin gets the stream over SRTLA, with its latency in milliseconds', () => {
  const { moblinLink } = connectionKit('Relay default', addressesAt('relay.example.net'))
  expect(moblinReads(moblinLink)).toEqual({
    streams: [
      {
        name: 'Relay default',
        url: 'srtla://relay.example.net:5000?streamid=publish/live/a1b2c3d4',
        srt: { latency: 2000 },
      },
    ],
  })
})

test('Larix gets address and stream id apart, over SRT, and takes the place of what it had under that name', () => {
  const { larixLink } = connectionKit('Relay default', addressesAt('relay.example.net'))
  expect(larixLink).toMatch(/^larix:\/\/set\/v1\?conn\[\]\[url\]=/)
  expect(groveReads(larixLink)).toEqual({
    'conn[][url]': 'srt://relay.example.net:4001',
    'conn[][name]': 'Relay default',
    'conn[][srtstreamid]': 'publish/live/a1b2c3d4',
    'conn[][srtlatency]': '2000',
    'conn[][overwrite]': 'on',
  })
})

test('IRL Pro gets the same over SRTLA', () => {
  const { irlProLink } = connectionKit('Relay default', addressesAt('relay.example.net'))
  expect(groveReads(irlProLink)).toMatchObject({
    'conn[][url]': 'srtla://relay.example.net:5000',
    'conn[][srtstreamid]': 'publish/live/a1b2c3d4',
  })
})

test('BELABOX gets three fields, an IPv6 address without its brackets', () => {
  const { belabox } = connectionKit('Relay default', addressesAt('[2001:db8::7]'))
  expect(belabox).toEqual({ address: '2001:db8::7', port: '5000', streamId: 'publish/live/a1b2c3d4' })
})

test('OBS gets the player address with its latency in microseconds', () => {
  const { obsInput } = connectionKit('Relay default', addressesAt('relay.example.net'))
  const input = new URL(obsInput)
  expect(`${input.protocol}//${input.host}`).toBe('srt://relay.example.net:4000')
  expect(Object.fromEntries(input.searchParams)).toEqual({ streamid: 'play/live/a1b2c3d4', latency: '2000000' })
})

test('links read back as what went in, whatever characters it has', () => {
  const anyText = fc.string({ unit: 'binary', maxLength: 80 })
  const anyHost = fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.ipV6().map((address) => `[${address}]`),
  )
  fc.assert(
    fc.property(anyText, anyHost, anyText, (name, host, token) => {
      const addresses = addressesAt(host, token)
      const kit = connectionKit(name, addresses)
      expect(moblinReads(kit.moblinLink).streams[0]).toMatchObject({ name, url: addresses.srtla_url })
      for (const [link, address] of [
        [kit.larixLink, `srt://${host}:4001`],
        [kit.irlProLink, `srtla://${host}:5000`],
      ] as const)
        expect(groveReads(link)).toMatchObject({
          'conn[][url]': address,
          'conn[][name]': name,
          'conn[][srtstreamid]': `publish/live/${token}`,
        })
      expect(kit.belabox.streamId).toBe(`publish/live/${token}`)
    }),
    { numRuns: 500 },
  )
})

test('an address of another shape is nobody’s link', () => {
  const addresses = { ...addressesAt('relay.example.net'), srtla_url: 'srtla://relay.example.net' }
  expect(() => connectionKit('Relay default', addresses)).toThrow('another shape')
})
