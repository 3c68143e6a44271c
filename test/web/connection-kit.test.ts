/** The links and inputs with which encoders and OBS are set up. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Addresses, connectionKit } from '../../web/connection-kit.ts'

const addressesAt = (host: string, token = 'a1b2c3d4'): Addresses => ({
  srtla_url: `srtla://${host}:5000?streamid=publish/live/${token}`,
  srt_url: `srt://${host}:4001?streamid=publish/live/${token}`,
  player_url: `srt://${host}:4000?streamid=play/live/${token}`,
  stats_url: `http://${host}:5080/stats`,
})

/** Decodes a link as Moblin does. */
const parseMoblinLink = (link: string) =>
  JSON.parse(decodeURIComponent(link.replace(/^moblin:\/\/\?/, ''))) as { streams: Record<string, unknown>[] }

/** Decodes a link as Larix does. */
const parseGroveLink = (link: string) => Object.fromEntries(new URL(link).searchParams)

test('the Moblin link has the SRTLA address and the latency in milliseconds', () => {
  const { moblinLink } = connectionKit('Relay default', addressesAt('relay.example.net'))
  expect(parseMoblinLink(moblinLink)).toEqual({
    streams: [
      {
        name: 'Relay default',
        url: 'srtla://relay.example.net:5000?streamid=publish/live/a1b2c3d4',
        srt: { latency: 2000 },
      },
    ],
  })
})

test('the Larix link has the SRT address and the stream ID, and overwrites a connection of the same name', () => {
  const { larixLink } = connectionKit('Relay default', addressesAt('relay.example.net'))
  expect(larixLink).toMatch(/^larix:\/\/set\/v1\?conn\[\]\[url\]=/)
  expect(parseGroveLink(larixLink)).toEqual({
    'conn[][url]': 'srt://relay.example.net:4001',
    'conn[][name]': 'Relay default',
    'conn[][srtstreamid]': 'publish/live/a1b2c3d4',
    'conn[][srtlatency]': '2000',
    'conn[][overwrite]': 'on',
  })
})

test('the IRL Pro link has the SRTLA address', () => {
  const { irlProLink } = connectionKit('Relay default', addressesAt('relay.example.net'))
  expect(parseGroveLink(irlProLink)).toMatchObject({
    'conn[][url]': 'srtla://relay.example.net:5000',
    'conn[][srtstreamid]': 'publish/live/a1b2c3d4',
  })
})

test('the BELABOX fields have an IPv6 address without brackets', () => {
  const { belabox } = connectionKit('Relay default', addressesAt('[2001:db8::7]'))
  expect(belabox).toEqual({ address: '2001:db8::7', port: '5000', streamId: 'publish/live/a1b2c3d4' })
})

test('the OBS input has the player address and the latency in microseconds', () => {
  const { obsInput } = connectionKit('Relay default', addressesAt('relay.example.net'))
  const input = new URL(obsInput)
  expect(`${input.protocol}//${input.host}`).toBe('srt://relay.example.net:4000')
  expect(Object.fromEntries(input.searchParams)).toEqual({ streamid: 'play/live/a1b2c3d4', latency: '2000000' })
})

test('a scene switcher gets the statistics in the path form, with the play key as publisher', () => {
  const addresses = {
    ...addressesAt('relay.example.net'),
    player_url: 'srt://relay.example.net:4000?streamid=play/live/Zy8_play-key&passphrase=Bridge-over_river.42',
  }
  expect(connectionKit('Relay default', addresses).switcher).toEqual({
    statsUrl: 'http://relay.example.net:5080/stats/Zy8_play-key',
    publisher: 'Zy8_play-key',
  })
})

test('the passphrase of an encrypted relay is in every format, and not in the stream ID', () => {
  const { srtla_url, srt_url, player_url, stats_url } = addressesAt('relay.example.net')
  const encrypted = (url: string) => `${url}&passphrase=Bridge-over_river.42`
  const addresses = { srtla_url: encrypted(srtla_url), srt_url: encrypted(srt_url), player_url: encrypted(player_url) }
  const kit = connectionKit('Relay default', { ...addresses, stats_url })
  expect(parseMoblinLink(kit.moblinLink).streams[0]).toMatchObject({ url: addresses.srtla_url })
  for (const link of [kit.larixLink, kit.irlProLink])
    expect(parseGroveLink(link)).toMatchObject({
      'conn[][srtstreamid]': 'publish/live/a1b2c3d4',
      'conn[][srtpass]': 'Bridge-over_river.42',
      'conn[][srtpbkl]': '16',
    })
  expect(kit).toMatchObject({ belabox: { streamId: 'publish/live/a1b2c3d4' }, passphrase: 'Bridge-over_river.42' })
  expect(new URL(kit.obsInput).searchParams.get('passphrase')).toBe('Bridge-over_river.42')
})

test('links decode to their input, for any characters', () => {
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
      expect(parseMoblinLink(kit.moblinLink).streams[0]).toMatchObject({ name, url: addresses.srtla_url })
      for (const [link, address] of [
        [kit.larixLink, `srt://${host}:4001`],
        [kit.irlProLink, `srtla://${host}:5000`],
      ] as const)
        expect(parseGroveLink(link)).toMatchObject({
          'conn[][url]': address,
          'conn[][name]': name,
          'conn[][srtstreamid]': `publish/live/${token}`,
        })
      expect(kit.belabox.streamId).toBe(`publish/live/${token}`)
    }),
    { numRuns: 500 },
  )
})

test('an address without a stream ID throws', () => {
  const addresses = { ...addressesAt('relay.example.net'), srtla_url: 'srtla://relay.example.net' }
  expect(() => connectionKit('Relay default', addresses)).toThrow('without host, port and streamid')
})
