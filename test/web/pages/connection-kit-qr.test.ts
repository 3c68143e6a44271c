/** The QR codes of the connection kit. */
import { render } from 'preact-render-to-string'
import { encode } from 'uqr'
import { expect, test } from 'vitest'
import { QrCode } from '../../../web/pages/connection-kit-qr.tsx'

const link =
  'larix://set/v1?conn[][url]=srt%3A%2F%2Frelay.example.net%3A4001&conn[][srtstreamid]=publish%2Flive%2Fa1b2c3d4'

test('the image has the modules of the code and a quiet zone of four modules', () => {
  const svg = render(QrCode({ content: link }))
  const { size, data } = encode(link, { ecc: 'M', border: 4 })
  expect(svg).toContain(`viewBox="0 0 ${size} ${size}"`)
  const drawn = Array.from({ length: size }, () => Array.from({ length: size }, () => false))
  for (const [, x = '', y = '', width = ''] of svg.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g))
    for (let at = Number(x); at < Number(x) + Number(width); at += 1) (drawn[Number(y)] ?? [])[at] = true
  expect(drawn).toEqual(data)
  const rim = data.flatMap((row, y) => row.filter((_, x) => Math.min(x, y, size - 1 - x, size - 1 - y) < 4))
  expect(rim).not.toContain(true)
})

test('the accessible name does not contain the content', () => {
  const svg = render(QrCode({ content: link }))
  expect(svg).toContain('<title>QR code</title>')
  expect(svg).not.toMatch(/larix:|a1b2c3d4/)
})
